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

/// A new token.
pub fn make() -> Result<Token, Failure> {
    crate::signing::no_core_dumps();
    Token::generate().map_err(|_| {
        Failure::new(
            Class::Io,
            "the system gives no random bytes; nothing was changed",
            "Check the system's random device.",
        )
    })
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
