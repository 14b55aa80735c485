//! Reading and writing files: what is refused, and that nothing partial is left.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::io::Write as _;
use std::path::Path;

use plimsoll_console::files::{self, Dash, Inputs, Mode, OutFile, Replace};
use plimsoll_console::{Class, Console, ExitCode, Failure, Options, Stream};

fn console() -> Console {
    let options = Options::new("test", Stream::Verdict);
    Console::with_streams(
        options,
        Box::new(std::io::sink()),
        Box::new(std::io::sink()),
        (false, false),
    )
}

fn read(path: impl AsRef<Path>, dash: Dash, limit: u64) -> Result<Vec<u8>, Failure> {
    Inputs::new(&console()).read(path.as_ref(), dash, limit)
}

fn refused<T: std::fmt::Debug>(
    result: Result<T, Failure>,
    class: Class,
    exit: ExitCode,
    words: &str,
) {
    let failure = result.unwrap_err();
    assert_eq!(
        (failure.class(), failure.exit_code()),
        (class, exit),
        "{failure}"
    );
    assert!(failure.message().contains(words), "{failure}");
    assert!(!failure.message().contains("os error"), "{failure}");
}

#[test]
fn files_are_read_up_to_their_limit() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("f");
    std::fs::write(&file, "12345").unwrap();
    assert_eq!(read(&file, Dash::Refused, 5).unwrap(), b"12345");
    assert_eq!(read(&file, Dash::Allowed, u64::MAX).unwrap(), b"12345");
    refused(
        read(&file, Dash::Refused, 4),
        Class::Io,
        ExitCode::Usage,
        "larger than 4 bytes",
    );
    let inputs = console();
    let inputs = Inputs::new(&inputs);
    let input = inputs.open(&file, Dash::Refused).unwrap();
    assert_eq!((input.size(), input.path()), (Some(5), file.as_path()));
}

#[test]
fn what_is_no_file_is_refused_in_plain_words() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let io = |path: &Path, words| {
        refused(
            read(path, Dash::Refused, 9),
            Class::Io,
            ExitCode::Usage,
            words,
        );
    };
    io(&at("absent"), "it does not exist");
    io(dir.path(), "is a directory");
    std::fs::write(at("f"), "x").unwrap();
    io(&at("f/below"), "not a directory");
    refused(
        read("-", Dash::Refused, 9),
        Class::Usage,
        ExitCode::Usage,
        "not allowed",
    );
    refused(
        read(dir.path(), Dash::Allowed, 9),
        Class::Io,
        ExitCode::Usage,
        "is a directory",
    );
}

#[test]
fn standard_input_is_named_once() {
    let console = console();
    let inputs = Inputs::new(&console);
    assert!(
        inputs
            .open(Path::new("-"), Dash::Allowed)
            .unwrap()
            .file()
            .is_none()
    );
    refused(
        inputs.open(Path::new("-"), Dash::Allowed),
        Class::Usage,
        ExitCode::Usage,
        "more than once",
    );
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn nothing_blocks_and_nothing_is_endless() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        refused(
            read(&pipe, Dash::Refused, 9),
            Class::Io,
            ExitCode::Usage,
            "is a pipe",
        );
        refused(
            read("/dev/zero", Dash::Refused, 9),
            Class::Io,
            ExitCode::Usage,
            "is a character device",
        );
        refused(
            read("/dev/zero", Dash::Allowed, 9),
            Class::Io,
            ExitCode::Usage,
            "larger than 9 bytes",
        );
        let socket = dir.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        refused(
            read(&socket, Dash::Allowed, 9),
            Class::Io,
            ExitCode::Usage,
            "is a socket",
        );

        // A named pipe is read where standard input is, also when its writer comes late.
        let (path, begun) = (pipe.clone(), std::sync::mpsc::channel());
        let reader = std::thread::spawn(move || {
            begun.0.send(()).unwrap();
            read(&path, Dash::Allowed, 9)
        });
        begun.1.recv().unwrap();
        std::fs::File::options()
            .write(true)
            .open(&pipe)
            .unwrap()
            .write_all(b"late")
            .unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), b"late");
    }

    #[test]
    fn links_to_inputs_are_followed_and_dangling_ones_are_absent() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "x").unwrap();
        symlink("f", dir.path().join("good")).unwrap();
        symlink("nowhere", dir.path().join("dangling")).unwrap();
        assert_eq!(
            read(dir.path().join("good"), Dash::Refused, 9).unwrap(),
            b"x"
        );
        refused(
            read(dir.path().join("dangling"), Dash::Refused, 9),
            Class::Io,
            ExitCode::Usage,
            "does not exist",
        );
    }

    #[test]
    fn modes_are_those_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (private, public) = (dir.path().join("private"), dir.path().join("public"));
        files::write(&private, b"k", Mode::Private, Replace::Never).unwrap();
        files::write(&public, b"p", Mode::Public, Replace::Never).unwrap();
        assert_eq!(mode(&private), 0o600);
        let probe = dir.path().join("probe");
        std::fs::write(&probe, "").unwrap();
        assert_eq!(mode(&public), mode(&probe) & 0o644, "the umask holds");
    }

    #[test]
    fn links_and_devices_are_never_written_through_or_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        std::fs::write(&target, "old").unwrap();
        for (name, to) in [("link", "target"), ("dangling", "nowhere")] {
            let link = dir.path().join(name);
            symlink(to, &link).unwrap();
            for replace in [Replace::Never, Replace::WithForce, Replace::Forced] {
                let written = files::write(&link, b"new", Mode::Private, replace);
                refused(written, Class::Exists, ExitCode::Usage, "a symbolic link");
            }
        }
        let forced = files::write(Path::new("/dev/null"), b"x", Mode::Private, Replace::Forced);
        refused(forced, Class::Exists, ExitCode::Usage, "not a regular file");
        let forced = files::write(dir.path(), b"x", Mode::Private, Replace::Forced);
        refused(forced, Class::Exists, ExitCode::Usage, "a directory");
        assert_eq!(std::fs::read(&target).unwrap(), b"old");
        assert!(!dir.path().join("nowhere").exists());
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut file = OutFile::create(&path, Mode::Private, Replace::Never).unwrap();
    file.write_all(b"half").unwrap();
    assert!(!path.exists());
    drop(file);
    assert_eq!(names(dir.path()), Vec::<String>::new());

    let mut file = OutFile::create(&path, Mode::Private, Replace::Never).unwrap();
    file.write_all(b"whole").unwrap();
    file.commit().unwrap();
    assert_eq!(names(dir.path()), ["out"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"whole");
}

#[test]
fn existing_files_are_replaced_only_when_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    std::fs::write(&path, "old").unwrap();
    for replace in [Replace::Never, Replace::WithForce] {
        let written = files::write(&path, b"new", Mode::Public, replace);
        let advice = written.as_ref().unwrap_err().advice().to_owned();
        assert_eq!(advice.contains("--force"), replace == Replace::WithForce);
        refused(written, Class::Exists, ExitCode::Usage, "exists already");
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    files::write(&path, b"new", Mode::Public, Replace::Forced).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(names(dir.path()), ["out"]);
}

#[test]
fn who_comes_first_keeps_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    let mut file = OutFile::create(&path, Mode::Private, Replace::Never).unwrap();
    file.write_all(b"ours").unwrap();
    std::fs::write(&path, "theirs").unwrap();
    refused(
        file.commit(),
        Class::Exists,
        ExitCode::Usage,
        "exists already",
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
    assert_eq!(names(dir.path()), ["out"]);
}

#[test]
fn a_place_that_takes_no_file_is_io_before_any_work() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("absent/out");
    let written = files::write(&path, b"x", Mode::Private, Replace::Never);
    refused(written, Class::Io, ExitCode::Usage, "does not exist");
}
