//! Tokens on their way in and out. None is ever an argument, in a log or in an
//! error.

use std::{
    fs::File,
    io::{self, IsTerminal as _, Read as _},
};

use plimsoll_callers::{CallerId, READ_AT_MOST, Token};
use plimsoll_console::{Class, Console, ExitCode, Failure, files::plain_words};
use zeroize::Zeroizing;

use super::refusal;

/// A new token for standard output, which must lead somewhere: a token is shown
/// once. An output that was closed at the start has become the null device.
pub fn make() -> Result<Token, Failure> {
    if leads_nowhere(&io::stdout()) {
        return Err(Failure::new(
            Class::Io,
            "standard output is closed or the null device, so the new token would be lost; \
             nothing was changed",
            "Send standard output to what keeps the token: a file of its owner alone, or a pipe.",
        )
        .exit(ExitCode::Refused));
    }
    crate::signing::no_core_dumps();
    Token::generate().map_err(|_| {
        Failure::new(
            Class::Io,
            "the system gives no random bytes; nothing was changed",
            "Check the system's random device.",
        )
    })
}

#[cfg(unix)]
fn leads_nowhere(stdout: &io::Stdout) -> bool {
    use std::os::{
        fd::AsFd as _,
        unix::fs::{FileTypeExt as _, MetadataExt as _},
    };
    let Ok(out) = stdout.as_fd().try_clone_to_owned().map(File::from) else {
        return true;
    };
    let null = std::fs::metadata("/dev/null");
    out.metadata().is_ok_and(|out| {
        out.file_type().is_char_device() && null.is_ok_and(|null| null.rdev() == out.rdev())
    })
}

#[cfg(not(unix))]
fn leads_nowhere(_: &io::Stdout) -> bool {
    false
}

/// The token on standard input, read past the buffers of this process.
pub fn take(console: &Console) -> Result<Token, Failure> {
    crate::signing::no_core_dumps();
    let stdin = io::stdin();
    if stdin.is_terminal() {
        console.note("reading the token from standard input; end it with Ctrl-D");
    }
    let failed = |error: &io::Error| {
        Failure::new(
            Class::Io,
            format!("standard input cannot be read: {}", plain_words(error)),
            "Pipe the token in, or redirect a file that holds it.",
        )
    };
    // Room for all of it from the start: a vector that grows leaves copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(READ_AT_MOST as usize + 1));
    descriptor(&stdin)
        .and_then(|input| input.take(READ_AT_MOST).read_to_end(&mut text))
        .map_err(|error| failed(&error))?;
    Token::import(text).map_err(refusal::bad_token)
}

#[cfg(unix)]
fn descriptor(stdin: &io::Stdin) -> io::Result<File> {
    use std::os::fd::AsFd as _;
    Ok(stdin.as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn descriptor(stdin: &io::Stdin) -> io::Result<File> {
    use std::os::windows::io::AsHandle as _;
    Ok(stdin.as_handle().try_clone_to_owned()?.into())
}

/// Hands the new token over. The registry has changed by then, so a token that
/// does not arrive is a caller nobody can be.
pub fn give(console: &Console, id: &CallerId, token: &Token) -> Result<(), Failure> {
    let mut line = Zeroizing::new(Vec::with_capacity(token.reveal().len() + 1));
    line.extend_from_slice(token.reveal());
    line.push(b'\n');
    console.deliver(&line).map_err(|error| {
        Failure::new(
            Class::Io,
            format!(
                "the registry was changed and the new token of caller {:?} could not be handed \
                 over: {}",
                id.as_str(),
                plain_words(&error)
            ),
            "Nobody has this token. Run clients rotate for that caller, with an output that takes \
             the token.",
        )
        .exit(ExitCode::Refused)
    })
}
