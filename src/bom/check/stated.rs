//! Step 4: what the BOM's own properties say it is.

use crate::{
    fault::{BomError, Code, Refusal},
    profile::{Attach, ImageName, Kind, Options, PROFILE, Scope, SpecVersion},
    tree::Node,
};

/// The choices a BOM names.
pub(super) struct Stated {
    pub(super) kind: Kind,
    pub(super) scope: Scope,
    pub(super) lines: Vec<u64>,
    pub(super) key_id: String,
    pub(super) options: Options,
}

/// Reads the top-level properties: exactly these, in this order.
pub(super) fn read(root: &Node<'_>, spec_version: SpecVersion) -> Result<Stated, BomError> {
    let properties = root.get("properties").map_or(&[][..], Node::items);
    let mut rest = properties.iter().enumerate().peekable();
    let mut next = |name: &str, optional: bool| -> Result<Option<(String, String)>, BomError> {
        let full = format!("plimsoll:{name}");
        let there = rest.peek().map(|(i, property)| (*i, *property));
        match there {
            Some((i, property)) if property.text_of("name") == Some(full.as_str()) => {
                rest.next();
                let value = property.text_of("value").unwrap_or_default();
                Ok(Some((value.to_owned(), format!("/properties/{i}/value"))))
            }
            _ if optional => Ok(None),
            there => {
                let fact = "the properties are not those of the profile, in their order";
                let refusal = Refusal::new(Code::BomProfile, fact).expected(full);
                Err(match there {
                    Some((i, property)) => {
                        let refusal = refusal.at(format!("/properties/{i}/name"));
                        match property.text_of("name") {
                            Some(found) => refusal.found(found),
                            None => refusal,
                        }
                    }
                    None => refusal.at("/properties"),
                }
                .into())
            }
        }
    };
    let profile = required(
        next("bom:profile", false)?,
        "the profile is not known",
        |text| (text == PROFILE).then_some(()),
    );
    profile?;
    let kind = required(
        next("bom:kind", false)?,
        "the kind is not known",
        Kind::parse,
    )?;
    let attach = required(
        next("bom:attach", false)?,
        "the attachment is not known",
        Attach::parse,
    )?;
    let image_name = match next("bom:imageName", true)? {
        None => None,
        there => Some(required(
            there,
            "the image's name is not one",
            ImageName::parse,
        )?),
    };
    let scope = required(
        next("evidence:scope", false)?,
        "the scope is not known",
        |text| {
            // A session and a receipt are of a whole bundle.
            Scope::parse(text).filter(|scope| *scope == Scope::Bundle || kind == Kind::Run)
        },
    )?;
    let lines = required(
        next("evidence:lines", false)?,
        "the lines are not ascending numbers, or not as many as the kind has",
        |text| numbers(text, kind),
    )?;
    let key_id = required(next("evidence:signingKey", false)?, "", |text| {
        Some(text.to_owned())
    })?;
    if let Some((i, property)) = rest.next() {
        let refusal = Refusal::new(Code::BomProfile, "a property is not of the profile")
            .at(format!("/properties/{i}/name"));
        return Err(match property.text_of("name") {
            Some(found) => refusal.found(found),
            None => refusal,
        }
        .into());
    }
    Ok(Stated {
        kind,
        scope,
        lines,
        key_id,
        options: Options {
            attach,
            image_name,
            spec_version,
            // What was attached once is compared, whatever its size.
            max_attach: u64::MAX,
        },
    })
}

fn required<T>(
    there: Option<(String, String)>,
    fact: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, BomError> {
    let (value, pointer) = there.unwrap_or_default();
    parse(&value).ok_or_else(|| {
        Refusal::new(Code::BomProfile, fact)
            .at(pointer)
            .found(&value)
            .into()
    })
}

fn numbers(text: &str, kind: Kind) -> Option<Vec<u64>> {
    let plain = |part: &str| {
        let digits = part.bytes().all(|b| b.is_ascii_digit()) && !part.starts_with('0');
        digits.then(|| part.parse::<u64>().ok()).flatten()
    };
    let lines: Vec<u64> = text.split(',').map(plain).collect::<Option<_>>()?;
    let ascending = lines.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    let count = match kind {
        Kind::Run | Kind::Receipt => lines.len() == 1,
        // At least one call and the close.
        Kind::Session => lines.len() >= 2,
    };
    (ascending && count).then_some(lines)
}
