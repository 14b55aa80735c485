//! How many elements a request's lists hold, counted before a decoder sees it.
//!
//! Two bytes of a message become some tens in memory when they are an element,
//! and compressed they cost next to nothing to send. No list of the schema may
//! hold more than [`MAX_LIST_ELEMENTS`](crate::limits::MAX_LIST_ELEMENTS), so
//! counting stops there and nothing of the message is decoded. Only lists that
//! the decoder would build are counted: a member it skips may hold anything.
//! What is not well formed is left to the scan and the decoder behind this.

use std::collections::BTreeMap;

use crate::limits::MAX_JSON_DEPTH;

/// A list holds more elements than any list of the schema may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a list has at most {most} elements")]
pub struct TooManyElements {
    /// The bound that was passed.
    pub most: usize,
}

/// A member with lists in it, or a list.
struct Member {
    number: u64,
    /// The spellings that JSON knows it by.
    names: &'static [&'static str],
    of: Of,
    /// Whether it is one of several of which a message keeps the last.
    payload: bool,
}

enum Of {
    /// A message.
    Message(&'static [Member]),
    /// A list of scalars or messages; of the latter, their members.
    List(&'static [Member]),
}

const fn list(number: u64, names: &'static [&'static str], of: &'static [Member]) -> Member {
    Member {
        number,
        names,
        of: Of::List(of),
        payload: false,
    }
}

const fn rule(number: u64) -> Member {
    Member {
        number,
        names: &["softwareRule", "software_rule"],
        of: Of::Message(RULE),
        payload: false,
    }
}

const fn payload(number: u64, names: &'static [&'static str], of: &'static [Member]) -> Member {
    Member {
        number,
        names,
        of: Of::Message(of),
        payload: true,
    }
}

const RULE: &[Member] = &[list(2, &["identities"], &[])];
const PROJECT: &[Member] = &[
    list(1, &["files"], &[]),
    list(2, &["steps"], &[]),
    list(4, &["artifacts"], &[]),
];
const ROW: &[Member] = &[list(1, &["values"], &[])];
const MODULE: &[Member] = &[list(2, &["rows"], ROW)];
const CELL: &[Member] = &[list(3, &["files"], &[])];

const RUN: &[Member] = &[
    rule(5),
    payload(10, &["javascript"], &[]),
    payload(11, &["project"], PROJECT),
    payload(12, &["module"], MODULE),
    payload(13, &["cell"], CELL),
];
const SESSION_RUN: &[Member] = &[
    rule(6),
    payload(10, &["javascript"], &[]),
    payload(11, &["project"], PROJECT),
    payload(12, &["cell"], CELL),
];
const OPEN_SESSION: &[Member] = &[rule(6), list(7, &["languages"], &[])];

fn members(procedure: &str) -> &'static [Member] {
    match procedure {
        "Run" => RUN,
        "SessionRun" => SESSION_RUN,
        "OpenSession" => OPEN_SESSION,
        // The requests of the others have no lists.
        _ => &[],
    }
}

/// Counts the elements of each list of a procedure's request in JSON; `most` is
/// what one list may hold, at least 1. Time grows linearly with the text up to
/// the first element too many; memory does not grow.
///
/// # Errors
/// [`TooManyElements`] at the first list over the bound. Text that is not JSON
/// may pass.
pub fn check_json(procedure: &str, text: &[u8], most: usize) -> Result<(), TooManyElements> {
    let root = members(procedure);
    if root.is_empty() {
        return Ok(());
    }
    // The open containers.
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let length = string(&text[at..]);
                if let Some(Open::Object { members, name, .. }) = open.last_mut()
                    && !members.is_empty()
                {
                    *name = (at, at + length);
                }
                at += length;
                continue;
            }
            b':' => {
                if let Some(Open::Object {
                    members,
                    name,
                    member,
                }) = open.last_mut()
                {
                    *member = find(members, text.get(name.0..name.1).unwrap_or_default());
                }
            }
            b'[' | b'{' => {
                let next = match (open.last(), byte) {
                    (None, b'{') => Open::object(root),
                    (None, _) => Open::object(&[]),
                    (Some(above), b'{') => Open::object(above.object_below()),
                    (Some(above), _) => above.list_below(most),
                };
                open.push(next);
                if open.len() > MAX_JSON_DEPTH {
                    return Ok(()); // The scan refuses it before it is decoded.
                }
            }
            b']' | b'}' => drop(open.pop()),
            b',' => match open.last_mut() {
                Some(Open::List {
                    left: Some(left), ..
                }) => *left = left.checked_sub(1).ok_or(TooManyElements { most })?,
                Some(Open::Object { member, .. }) => *member = None,
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// An open object or list of a JSON text.
enum Open {
    Object {
        members: &'static [Member],
        /// Where the last string stands that may be a member's name.
        name: (usize, usize),
        /// The member whose value comes.
        member: Option<&'static Member>,
    },
    List {
        /// The members of its elements.
        members: &'static [Member],
        /// The elements that may still follow; `None` where they are not counted.
        left: Option<usize>,
    },
}

impl Open {
    fn object(members: &'static [Member]) -> Open {
        Open::Object {
            members,
            name: (0, 0),
            member: None,
        }
    }

    /// The members of an object that opens here.
    fn object_below(&self) -> &'static [Member] {
        match self {
            Open::Object {
                member:
                    Some(Member {
                        of: Of::Message(members),
                        ..
                    }),
                ..
            } => members,
            Open::List {
                members,
                left: Some(_),
            } => members,
            _ => &[],
        }
    }

    /// A list that opens here.
    fn list_below(&self, most: usize) -> Open {
        match self {
            Open::Object {
                member:
                    Some(Member {
                        of: Of::List(members),
                        ..
                    }),
                ..
            } => Open::List {
                members,
                // The first element has no comma before it.
                left: Some(most.saturating_sub(1)),
            },
            _ => Open::List {
                members: &[],
                left: None,
            },
        }
    }
}

/// The length of the string at the start of a text, its quotes included.
fn string(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The member that a quoted name names.
fn find(members: &'static [Member], quoted: &[u8]) -> Option<&'static Member> {
    let bare = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let escaped: String;
    let name = if bare.contains(&b'\\') {
        escaped = serde_json::from_slice(quoted).ok()?;
        escaped.as_bytes()
    } else {
        bare
    };
    members
        .iter()
        .find(|member| member.names.iter().any(|known| known.as_bytes() == name))
}

/// Counts the elements of each list of a procedure's request in binary; `most`
/// is what one list may hold. A message that stands twice is merged by the
/// decoder, so its elements are counted together.
///
/// # Errors
/// [`TooManyElements`] at the first list over the bound. Bytes that are not a
/// message may pass.
pub fn check_binary(procedure: &str, message: &[u8], most: usize) -> Result<(), TooManyElements> {
    let root = members(procedure);
    // By the number of the message that the list is in, 0 for the request
    // itself, and the list's own.
    let mut counts: BTreeMap<(u64, u64), usize> = BTreeMap::new();
    let mut payload = None;
    for (number, value) in Fields::of(message) {
        let Some(member) = root.iter().find(|member| member.number == number) else {
            continue;
        };
        if member.payload && payload.replace(number) != Some(number) {
            // Another payload takes the place of the one before it.
            counts.retain(|(outer, _), _| *outer != number);
        }
        match (&member.of, value) {
            (Of::Message(members), Value::Bytes(inner)) => {
                count_lists(members, inner, number, &mut counts, most)?;
            }
            (Of::List(_), Value::Bytes(_)) => add(&mut counts, (0, number), 1, most)?,
            _ => {}
        }
    }
    Ok(())
}

fn count_lists(
    members: &'static [Member],
    message: &[u8],
    outer: u64,
    counts: &mut BTreeMap<(u64, u64), usize>,
    most: usize,
) -> Result<(), TooManyElements> {
    for (number, value) in Fields::of(message) {
        let found = members.iter().find(|member| member.number == number);
        let (Some(Of::List(below)), Value::Bytes(element)) = (found.map(|m| &m.of), value) else {
            continue;
        };
        add(counts, (outer, number), 1, most)?;
        if !below.is_empty() {
            doubles(element, most)?;
        }
    }
    Ok(())
}

/// Counts a row's values, packed or one by one. An element is a message of its
/// own, so the count starts anew.
fn doubles(row: &[u8], most: usize) -> Result<(), TooManyElements> {
    let mut values = 0_usize;
    for (number, value) in Fields::of(row) {
        values += match value {
            _ if number != 1 => 0,
            Value::Bytes(packed) => packed.len() / 8,
            Value::Fixed64 => 1,
        };
        if values > most {
            return Err(TooManyElements { most });
        }
    }
    Ok(())
}

fn add(
    counts: &mut BTreeMap<(u64, u64), usize>,
    list: (u64, u64),
    elements: usize,
    most: usize,
) -> Result<(), TooManyElements> {
    let count = counts.entry(list).or_default();
    *count = count.saturating_add(elements);
    if *count > most {
        return Err(TooManyElements { most });
    }
    Ok(())
}

enum Value<'a> {
    Bytes(&'a [u8]),
    Fixed64,
}

/// The fields of a message that may be elements. What stands in a group is
/// skipped, as the decoder does; what is not well formed ends them.
struct Fields<'a> {
    rest: &'a [u8],
    groups: usize,
}

impl<'a> Fields<'a> {
    fn of(message: &'a [u8]) -> Self {
        Fields {
            rest: message,
            groups: 0,
        }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if *byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (value, rest) = self.rest.split_at_checked(usize::try_from(length).ok()?)?;
        self.rest = rest;
        Some(value)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let tag = self.varint()?;
            let value = match tag & 7 {
                0 => {
                    self.varint()?;
                    continue;
                }
                1 => {
                    self.take(8)?;
                    Value::Fixed64
                }
                2 => {
                    let length = self.varint()?;
                    Value::Bytes(self.take(length)?)
                }
                3 => {
                    self.groups = self.groups.saturating_add(1);
                    continue;
                }
                4 => {
                    self.groups = self.groups.checked_sub(1)?;
                    continue;
                }
                5 => {
                    self.take(4)?;
                    continue;
                }
                _ => return None,
            };
            if self.groups == 0 {
                return Some((tag >> 3, value));
            }
        }
    }
}

#[cfg(test)]
#[path = "elements_tests.rs"]
mod tests;
