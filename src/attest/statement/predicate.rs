//! Writing and reading the flat predicates of this system.

use crate::{
    escape::{self, Out},
    fault::{Fault, StatementReason},
    json::{Json, JsonFault},
    statement::refused,
};

/// Writes a flat object member by member.
pub(super) struct Writer(String);

impl Writer {
    pub(super) fn new() -> Self {
        Writer(String::with_capacity(1024))
    }

    fn name(&mut self, name: &str) {
        self.0.put(if self.0.is_empty() { "{\"" } else { ",\"" });
        self.0.put(name);
        self.0.put("\":");
    }

    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        escape::string(&mut self.0, value);
        self
    }

    /// Leaves the member out when it is empty.
    pub(super) fn some_text(self, name: &str, value: &str) -> Self {
        if value.is_empty() {
            return self;
        }
        self.text(name, value)
    }

    pub(super) fn number(mut self, name: &str, value: impl ToString) -> Self {
        self.name(name);
        self.0.put(&value.to_string());
        self
    }

    pub(super) fn yes(mut self, name: &str) -> Self {
        self.name(name);
        self.0.put("true");
        self
    }

    pub(super) fn end(mut self) -> String {
        self.0.put(if self.0.is_empty() { "{}" } else { "}" });
        self.0
    }
}

/// Reads a flat predicate; `member` reads the value of each member it knows
/// and answers `false` for others. An absent predicate has no members.
pub(super) fn read<'a>(
    payload: &'a [u8],
    predicate: Option<std::ops::Range<usize>>,
    mut member: impl FnMut(&mut Json<'a>, &str) -> Result<bool, JsonFault>,
) -> Result<(), Fault> {
    const PATH: &str = "payload.predicate";
    let Some(range) = predicate else {
        return Ok(());
    };
    // The frame's reader gave these bounds from the same text.
    let text = payload
        .get(range)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .ok_or_else(|| Fault::new(StatementReason::Json).in_member(PATH))?;
    let mut json = Json::new(text);
    json.object(|json, name, at| {
        let known = member(json, name).map_err(|fault| JsonFault {
            member: fault.member.or_else(|| Some(name.to_owned())),
            ..fault
        })?;
        if known {
            Ok(())
        } else {
            Err(json.unknown(name, at))
        }
    })
    .and_then(|()| json.end())
    .map_err(|fault| refused(fault, PATH))
}
