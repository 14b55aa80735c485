//! What starts first in a container: a clean environment, the start marker,
//! then the command.
//!
//! No variable of an image may reach a program of ours: the loader, the shell
//! and Node.js all read some. So every process starts through `env -i`, and a
//! guest-facing one goes on through a small shell script that says it started.

use super::fault::random_hex;

const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Arguments: the marker, then `NAME=value` entries, then the command. It forks
/// nothing, so the container's first process becomes the command. `@stdin` for
/// the marker waits for it on standard input, when all else is done: `read` takes one byte at a time
/// from a pipe and leaves what follows to the command.
const SCRIPT: &str = r#"
m=$1
shift
if [ -n "$m" ] && [ "$m" != @stdin ]; then
  printf '%s\n' "$m" >&2
fi
u=
while read -r k v rest; do
  case $k in Uid:) u=$v; break ;; esac
done </proc/self/status
h=
if [ -r /etc/passwd ]; then
  while IFS=: read -r name word uid gid full home shell || [ -n "$name" ]; do
    if [ "$uid" = "$u" ]; then h=$home; break; fi
    name=
  done </etc/passwd
fi
n=
if [ -r /etc/hostname ]; then
  IFS= read -r n </etc/hostname
fi
if [ "$m" = @stdin ]; then
  IFS= read -r m || exit 125
  printf '%s\n' "$m" >&2
fi
exec /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="${h:-/}" HOSTNAME="$n" "$@"
"#;

/// The line a container writes to standard error when its command is about to
/// start. Fresh for each call, so that nothing an image prints can stand for it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Marker(String);

impl Marker {
    pub(super) fn fresh() -> Result<Marker, getrandom::Error> {
        Ok(Marker(format!("plimsoll-started:{}", random_hex()?)))
    }

    /// The marker without its line end, as an argument.
    fn text(&self) -> &str {
        &self.0
    }

    /// The line as it is written.
    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = self.0.clone().into_bytes();
        line.push(b'\n');
        line
    }

    /// What the call wrote to standard error: all that follows the marker's
    /// first line. `None` when the marker is not there.
    pub(super) fn strip(&self, mut written: Vec<u8>) -> Option<Vec<u8>> {
        let line = self.line();
        let at = written
            .windows(line.len())
            .position(|window| window == line)?;
        Some(written.split_off(at + line.len()))
    }
}

/// When a container's command may start.
#[derive(Clone, Copy)]
pub(super) enum Start<'a> {
    /// At once.
    Now(&'a Marker),
    /// When the marker's line comes on standard input.
    Claimed,
}

/// The whole argument vector of a guest-facing command.
pub(super) fn guest(start: Start<'_>, environment: &[String], command: &[&str]) -> Vec<String> {
    let marker = match start {
        Start::Now(marker) => marker.text(),
        Start::Claimed => "@stdin",
    };
    let head = [
        "/usr/bin/env",
        "-i",
        PATH,
        "/bin/sh",
        "-c",
        SCRIPT,
        "plimsoll-start",
        marker,
    ];
    head.iter()
        .map(|&word| word.to_owned())
        .chain(environment.iter().cloned())
        .chain(command.iter().map(|&word| word.to_owned()))
        .collect()
}

/// The argument vector of one of our own probes: clean, without a marker.
pub(super) fn clean(command: &[&str]) -> Vec<String> {
    ["/usr/bin/env", "-i", PATH]
        .iter()
        .chain(command)
        .map(|&word| word.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::Write,
        process::{Command, Stdio},
    };

    fn run(arguments: &[String], input: &[u8]) -> (String, Vec<u8>) {
        let mut child = Command::new(&arguments[0])
            .args(&arguments[1..])
            .env("LD_DEBUG_SECRET", "from the image")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), output.stderr)
    }

    #[test]
    fn the_marker_comes_first_and_the_environment_is_ours() {
        let marker = Marker::fresh().unwrap();
        let entries = ["A=1 2".to_owned(), "-x=y".to_owned()];
        let arguments = guest(Start::Now(&marker), &entries, &["/usr/bin/env"]);
        let (stdout, stderr) = run(&arguments, b"");
        assert_eq!(stderr, marker.line());
        let mut lines: Vec<&str> = stdout.lines().collect();
        lines.retain(|line| !line.starts_with("HOSTNAME=") && !line.starts_with("HOME="));
        assert_eq!(lines, [PATH, "A=1 2", "-x=y"]);
        let home = stdout.lines().find(|l| l.starts_with("HOME=/"));
        assert!(home.is_some(), "{stdout}");
    }

    #[test]
    fn a_claimed_start_leaves_the_rest_of_the_input() {
        let marker = Marker::fresh().unwrap();
        let arguments = guest(Start::Claimed, &[], &["/bin/cat"]);
        let mut input = marker.line();
        input.extend_from_slice(b"code\nmore");
        let (stdout, stderr) = run(&arguments, &input);
        assert_eq!(stdout, "code\nmore");
        assert_eq!(marker.strip(stderr), Some(Vec::new()));
    }

    #[test]
    fn input_that_ends_before_a_claim_starts_nothing() {
        let arguments = guest(Start::Claimed, &[], &["/bin/echo", "started"]);
        assert_eq!(run(&arguments, b""), (String::new(), Vec::new()));
    }

    #[test]
    fn only_what_follows_the_first_marker_is_the_guests() {
        let marker = Marker::fresh().unwrap();
        let mut written = b"noise of a loader\n".to_vec();
        written.extend(marker.line());
        written.extend_from_slice(b"guest ");
        written.extend(marker.line());
        let mut rest = b"guest ".to_vec();
        rest.extend(marker.line());
        assert_eq!(marker.strip(written), Some(rest));
        assert_eq!(marker.strip(b"plimsoll-started:0\n".to_vec()), None);
        assert_ne!(marker.line(), Marker::fresh().unwrap().line());
    }
}
