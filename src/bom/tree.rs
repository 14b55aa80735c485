//! A BOM's values as they stand in its text, mostly borrowed from it.
//!
//! A BOM of a long session is large, and most of it is attachments: this tree
//! copies neither them nor the names, so it takes less memory than the text.

use std::{borrow::Cow, io::Write};

use plimsoll_attestation::json::{Json, JsonFault, Kind};
use serde_json::{Map, Value};

use crate::{
    fault::{BomError, Code, Refusal},
    print::{Form, Printer},
};

/// A value.
#[derive(Debug)]
pub(crate) enum Node<'a> {
    Null,
    Bool(bool),
    Number(&'a str),
    String(Cow<'a, str>),
    Array(Box<[Node<'a>]>),
    Object(Box<[(Cow<'a, str>, Node<'a>)]>),
}

impl<'a> Node<'a> {
    /// Reads strict JSON: UTF-8, no repeated member, nesting of at most 64.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, BomError> {
        if bytes.starts_with(b"\xef\xbb\xbf") {
            return Err(
                Refusal::new(Code::BomParse, "the file starts with a byte-order mark")
                    .byte(0)
                    .into(),
            );
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            Refusal::new(Code::BomParse, "the file is not UTF-8").byte(error.valid_up_to() as u64)
        })?;
        let mut json = Json::new(text);
        let node = value(text, &mut json).and_then(|node| json.end().map(|()| node));
        node.map_err(|fault| refused(&fault).into())
    }

    /// The member of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Node<'a>> {
        match self {
            Node::Object(members) => members
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn items(&self) -> &[Node<'a>] {
        match self {
            Node::Array(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a member.
    pub(crate) fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name)?.text()
    }

    /// Prints the value with sorted members, without the top-level member
    /// `but`.
    pub(crate) fn print<W: Write>(
        &self,
        printer: &mut Printer<W>,
        but: Option<&str>,
    ) -> std::io::Result<()> {
        match self {
            Node::Null => printer.literal("null"),
            Node::Bool(true) => printer.literal("true"),
            Node::Bool(false) => printer.literal("false"),
            Node::Number(text) => printer.literal(text),
            Node::String(text) => printer.string(text),
            Node::Array(items) => {
                printer.begin('[')?;
                items
                    .iter()
                    .try_for_each(|item| item.print(printer, None))?;
                printer.end(']')
            }
            Node::Object(members) => {
                printer.begin('{')?;
                let mut list: Vec<_> = members.iter().collect();
                list.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
                for (name, member) in list {
                    if but == Some(name.as_ref()) {
                        continue;
                    }
                    printer.name(name)?;
                    member.print(printer, None)?;
                }
                printer.end('}')
            }
        }
    }

    /// The compact text of a value, as far as `most` bytes.
    pub(crate) fn shown(&self, most: usize) -> String {
        struct Cut(Vec<u8>, usize);
        impl Write for Cut {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                let room = self.1.saturating_sub(self.0.len());
                self.0.extend(bytes.iter().take(room));
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut cut = Cut(Vec::new(), most);
        // Writing into memory does not fail.
        let _ = self.print(&mut Printer::new(&mut cut, Form::Compact), None);
        String::from_utf8_lossy(&cut.0).into_owned()
    }

    /// The value as the schema's validator takes it. Lists whose pointer is in
    /// `emptied` are left empty.
    pub(crate) fn value(&self, pointer: &mut String, emptied: &[&str]) -> Value {
        let length = pointer.len();
        match self {
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            Node::String(text) => Value::String(text.clone().into_owned()),
            Node::Array(_) if emptied.contains(&pointer.as_str()) => Value::Array(Vec::new()),
            Node::Array(items) => {
                let mut list = Vec::with_capacity(items.len());
                for (i, item) in items.iter().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&i.to_string());
                    list.push(item.value(pointer, emptied));
                    pointer.truncate(length);
                }
                Value::Array(list)
            }
            Node::Object(members) => {
                let mut map = Map::new();
                for (name, member) in members {
                    pointer.push('/');
                    pointer.push_str(name);
                    map.insert(name.to_string(), member.value(pointer, emptied));
                    pointer.truncate(length);
                }
                Value::Object(map)
            }
        }
    }

    /// The value at a pointer of plain names and numbers.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Node<'a>> {
        pointer
            .split('/')
            .skip(1)
            .try_fold(self, |node, part| match node {
                Node::Array(items) => items.get(part.parse::<usize>().ok()?),
                other => other.get(part),
            })
    }
}

fn value<'a>(text: &'a str, json: &mut Json<'a>) -> Result<Node<'a>, JsonFault> {
    match json.next_byte() {
        Some(b'{') => {
            let mut members = Vec::new();
            json.object::<JsonFault>(|json, name, at| {
                let name = borrowed(text, name, at);
                members.push((name, value(text, json)?));
                Ok(())
            })?;
            Ok(Node::Object(members.into_boxed_slice()))
        }
        Some(b'[') => {
            let mut items = Vec::new();
            json.array::<JsonFault>(|json| {
                items.push(value(text, json)?);
                Ok(())
            })?;
            Ok(Node::Array(items.into_boxed_slice()))
        }
        Some(b'"') => json.string().map(Node::String),
        Some(b'-' | b'0'..=b'9') => json.number().map(Node::Number),
        Some(b't' | b'f') => json.boolean().map(Node::Bool),
        _ if json.null() => Ok(Node::Null),
        // Refuses what is there as no value.
        _ => json.skip().map(|_| Node::Null),
    }
}

/// A member's name out of the text, where it is written without an escape.
fn borrowed<'a>(text: &'a str, name: &str, quote: usize) -> Cow<'a, str> {
    let start = quote.saturating_add(1);
    match text.get(start..start.saturating_add(name.len())) {
        Some(same) if same == name => Cow::Borrowed(same),
        _ => Cow::Owned(name.to_owned()),
    }
}

fn refused(fault: &JsonFault) -> Refusal {
    let fact = match fault.kind {
        Kind::ControlCharacter => "a control character stands in a string",
        Kind::Repeated => "a member is repeated",
        Kind::TooDeep => "values nest too deep",
        Kind::Trailing => "text follows the value",
        _ => "the file is not JSON",
    };
    let refusal = Refusal::new(Code::BomParse, fact).byte(fault.at as u64);
    match &fault.member {
        Some(member) => refusal.found(member),
        None => refusal,
    }
}

/// The first place where two values differ, and what stands there; `None` for
/// a side that has nothing there. `skip` is a top-level member that is not
/// looked at.
pub(crate) fn first_difference<'n, 'a>(
    expected: &'n Node<'a>,
    found: &'n Node<'a>,
    skip: Option<&str>,
) -> Option<Difference<'n, 'a>> {
    difference(expected, found, &mut String::new(), skip)
}

/// Where two values differ.
pub(crate) struct Difference<'n, 'a> {
    pub(crate) pointer: String,
    pub(crate) expected: Option<&'n Node<'a>>,
    pub(crate) found: Option<&'n Node<'a>>,
}

fn difference<'n, 'a>(
    expected: &'n Node<'a>,
    found: &'n Node<'a>,
    pointer: &mut String,
    skip: Option<&str>,
) -> Option<Difference<'n, 'a>> {
    let here = |pointer: &str, expected, found| {
        Some(Difference {
            pointer: pointer.to_owned(),
            expected,
            found,
        })
    };
    let length = pointer.len();
    match (expected, found) {
        (Node::Object(a), Node::Object(b)) => {
            let mut names: Vec<&str> = a.iter().chain(b.iter()).map(|(n, _)| n.as_ref()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names.into_iter().filter(|name| skip != Some(name)) {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                let at = match (expected.get(name), found.get(name)) {
                    (Some(a), Some(b)) => difference(a, b, pointer, None),
                    (a, b) => here(pointer, a, b),
                };
                if at.is_some() {
                    return at;
                }
                pointer.truncate(length);
            }
            None
        }
        (Node::Array(a), Node::Array(b)) => {
            for i in 0..a.len().max(b.len()) {
                pointer.push('/');
                pointer.push_str(&i.to_string());
                let at = match (a.get(i), b.get(i)) {
                    (Some(a), Some(b)) => difference(a, b, pointer, None),
                    (a, b) => here(pointer, a, b),
                };
                if at.is_some() {
                    return at;
                }
                pointer.truncate(length);
            }
            None
        }
        (Node::String(a), Node::String(b)) if a == b => None,
        (Node::Number(a), Node::Number(b)) if a == b => None,
        (Node::Bool(a), Node::Bool(b)) if a == b => None,
        (Node::Null, Node::Null) => None,
        (a, b) => here(pointer, Some(a), Some(b)),
    }
}
