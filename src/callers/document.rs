//! The text of a registry.
//!
//! Reading is strict: one UTF-8 object, no member twice, no member that is not
//! known. A misspelt `paid_seconds_per_day` must not read as "no allowance".
//! Every fault is found, not the first, so that one look mends a file.

use std::collections::HashSet;

use plimsoll_wire::strict_json;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    caller::{Caller, CallerId, Scope},
    fault::{Fault, FaultKind, Faults},
    token::Fingerprint,
};

/// Most bytes of a registry: some forty thousand callers.
pub const MAX_BYTES: u64 = 8 << 20;

/// Reads a registry. An empty list of callers is one.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Caller>, Faults> {
    let at = |offset, kind| {
        Faults::one(Fault {
            pointer: String::new(),
            offset,
            kind,
        })
    };
    if text.len() as u64 > MAX_BYTES {
        return Err(at(None, FaultKind::TooLarge));
    }
    strict_json::check(text).map_err(|e| at(Some(e.offset), FaultKind::NotJson(e.fault)))?;
    // The scan leaves the decoder only numbers it cannot hold.
    let value: Value = serde_json::from_slice(text).map_err(|_| at(None, FaultKind::Number))?;
    let mut reader = Reader {
        faults: Faults::none(),
        ids: HashSet::new(),
        fingerprints: HashSet::new(),
    };
    let callers = reader.document(&value);
    if reader.faults.is_none() {
        Ok(callers)
    } else {
        Err(reader.faults)
    }
}

/// Writes a registry: two spaces a level, members in their order, a newline.
pub(crate) fn write(callers: &[Caller]) -> Result<String, serde_json::Error> {
    let document = Document {
        clients: callers.iter().map(Client::of).collect(),
    };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

#[derive(Serialize)]
struct Document<'a> {
    clients: Vec<Client<'a>>,
}

#[derive(Serialize)]
struct Client<'a> {
    id: &'a str,
    token_sha256: String,
    scopes: Vec<&'a str>,
    #[serde(skip_serializing_if = "is_zero")]
    paid_seconds_per_day: u64,
}

// The signature is serde's.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl<'a> Client<'a> {
    fn of(caller: &'a Caller) -> Self {
        Client {
            id: caller.id.as_str(),
            token_sha256: caller.fingerprint.to_hex(),
            scopes: caller.scopes.iter().map(Scope::as_str).collect(),
            paid_seconds_per_day: caller.paid_seconds_per_day,
        }
    }
}

/// Goes through a document and gathers what is wrong.
struct Reader {
    faults: Faults,
    ids: HashSet<CallerId>,
    fingerprints: HashSet<Fingerprint>,
}

impl Reader {
    fn document(&mut self, value: &Value) -> Vec<Caller> {
        let Value::Object(members) = value else {
            // The scan refuses anything but an object.
            return Vec::new();
        };
        self.only(members, "", &["clients"]);
        match members.get("clients") {
            None => {
                self.faults.add("", FaultKind::Missing("clients"));
                Vec::new()
            }
            Some(Value::Array(clients)) => clients
                .iter()
                .enumerate()
                .filter_map(|(index, client)| self.client(client, index))
                .collect(),
            Some(_) => {
                self.faults.add("/clients", FaultKind::Type("an array"));
                Vec::new()
            }
        }
    }

    /// One caller; `None` when a part of it is missing or wrong, which the
    /// faults then say.
    fn client(&mut self, value: &Value, index: usize) -> Option<Caller> {
        let place = format!("/clients/{index}");
        let Value::Object(members) = value else {
            self.faults.add(&place, FaultKind::Type("an object"));
            return None;
        };
        self.only(
            members,
            &place,
            &["id", "token_sha256", "scopes", "paid_seconds_per_day"],
        );
        let id = self.id(members, &place);
        let fingerprint = self.fingerprint(members, &place);
        let scopes = self.scopes(members, &place);
        let paid = self.paid(members, &place);
        Some(Caller {
            id: id?,
            fingerprint: fingerprint?,
            scopes: scopes?,
            paid_seconds_per_day: paid?,
        })
    }

    fn id(&mut self, members: &Map<String, Value>, place: &str) -> Option<CallerId> {
        let text = self.text(members, place, "id")?;
        let place = format!("{place}/id");
        match CallerId::parse(text) {
            Ok(id) if self.ids.insert(id.clone()) => Some(id),
            Ok(_) => self.fault(&place, FaultKind::RepeatedId),
            Err(kind) => self.fault(&place, kind),
        }
    }

    fn fingerprint(&mut self, members: &Map<String, Value>, place: &str) -> Option<Fingerprint> {
        let text = self.text(members, place, "token_sha256")?;
        let place = format!("{place}/token_sha256");
        match Fingerprint::parse(text) {
            Some(found) if self.fingerprints.insert(found) => Some(found),
            Some(_) => self.fault(&place, FaultKind::RepeatedToken),
            None => self.fault(&place, FaultKind::NotAFingerprint),
        }
    }

    /// Absent scopes are none: such a caller may do nothing.
    fn scopes(&mut self, members: &Map<String, Value>, place: &str) -> Option<Vec<Scope>> {
        let list = match members.get("scopes") {
            None => return Some(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return self.fault(&format!("{place}/scopes"), FaultKind::Type("an array")),
        };
        let mut seen = HashSet::new();
        let mut scopes = Vec::with_capacity(list.len());
        let mut good = true;
        for (index, value) in list.iter().enumerate() {
            let parsed = value
                .as_str()
                .ok_or(FaultKind::Type("a string"))
                .and_then(Scope::parse)
                .and_then(|scope| {
                    if seen.insert(scope.clone()) {
                        Ok(scope)
                    } else {
                        Err(FaultKind::RepeatedScope)
                    }
                });
            match parsed {
                Ok(scope) => scopes.push(scope),
                Err(kind) => {
                    self.faults.add(&format!("{place}/scopes/{index}"), kind);
                    good = false;
                }
            }
        }
        good.then_some(scopes)
    }

    fn paid(&mut self, members: &Map<String, Value>, place: &str) -> Option<u64> {
        let Some(value) = members.get("paid_seconds_per_day") else {
            return Some(0);
        };
        // Readers with signed numbers must see the same.
        match value.as_u64().filter(|&n| i64::try_from(n).is_ok()) {
            Some(seconds) => Some(seconds),
            None => self.fault(
                &format!("{place}/paid_seconds_per_day"),
                FaultKind::Type("an integer of at least 0"),
            ),
        }
    }

    fn text<'v>(
        &mut self,
        members: &'v Map<String, Value>,
        place: &str,
        name: &'static str,
    ) -> Option<&'v str> {
        match members.get(name) {
            Some(Value::String(text)) => Some(text),
            Some(_) => self.fault(&format!("{place}/{name}"), FaultKind::Type("a string")),
            None => self.fault(place, FaultKind::Missing(name)),
        }
    }

    fn only(&mut self, members: &Map<String, Value>, place: &str, known: &[&str]) {
        for name in members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
        {
            self.faults.add(place, FaultKind::unknown(name));
        }
    }

    fn fault<T>(&mut self, place: &str, kind: FaultKind) -> Option<T> {
        self.faults.add(place, kind);
        None
    }
}
