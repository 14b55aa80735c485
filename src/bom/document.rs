//! A BOM as a small tree and three long lists that are made item by item.
//!
//! A session's components, tasks and declared evidence grow with its calls and
//! with their output. They are never held together: each pass over a document
//! makes them again, one item at a time, from lines that are read again.

use std::io::Write;

use plimsoll_attestation::PublicKey;
use serde_json::{Map, Value, json};

use crate::{
    components::{self, Platform, artifact_ref, input_ref, reference},
    described,
    fault::BomError,
    formulation,
    lines::Store,
    print::Printer,
    profile::{Options, PROFILE, Scope},
    subject::Subject,
    value::{Properties, put},
};

/// A long list of a BOM.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Place {
    Components,
    Evidence,
    Tasks,
}

impl Place {
    pub(crate) const ALL: [Place; 3] = [Place::Components, Place::Evidence, Place::Tasks];

    /// Where it stands.
    pub(crate) const fn pointer(self) -> &'static str {
        match self {
            Place::Components => "/components",
            Place::Evidence => "/declarations/evidence",
            Place::Tasks => "/formulation/0/workflows/0/tasks",
        }
    }
}

/// A BOM before its serial number.
pub(crate) struct Document<'e> {
    subject: &'e Subject,
    key: &'e PublicKey,
    store: &'e dyn Store,
    options: &'e Options,
    platform: Platform,
    /// Everything but the items of the long lists, which are empty in it.
    pub(crate) skeleton: Value,
}

impl<'e> Document<'e> {
    pub(crate) fn new(
        subject: &'e Subject,
        key: &'e PublicKey,
        store: &'e dyn Store,
        scope: Scope,
        options: &'e Options,
    ) -> Result<Self, BomError> {
        let platform = Platform::of(subject, options);
        let skeleton = skeleton(subject, key, scope, options, &platform)?;
        Ok(Document {
            subject,
            key,
            store,
            options,
            platform,
            skeleton,
        })
    }

    /// Makes the items of a list in order.
    pub(crate) fn each(
        &self,
        place: Place,
        take: &mut dyn FnMut(Value) -> Result<(), BomError>,
    ) -> Result<(), BomError> {
        let subject = self.subject;
        match place {
            Place::Components => self.components(take),
            Place::Evidence => {
                for call in subject.calls() {
                    take(described::evidence(call, self.options.attach)?)?;
                }
                match subject {
                    Subject::Receipt(_) => take(described::test_evidence(subject)?),
                    _ => Ok(()),
                }
            }
            Place::Tasks => match subject {
                Subject::Session(_) => subject
                    .calls()
                    .iter()
                    .try_for_each(|call| take(formulation::task(call)?)),
                _ => Ok(()),
            },
        }
    }

    fn components(
        &self,
        take: &mut dyn FnMut(Value) -> Result<(), BomError>,
    ) -> Result<(), BomError> {
        let subject = self.subject;
        self.platform
            .all()
            .try_for_each(|component| take(component.clone()))?;
        for call in subject.calls() {
            components::inputs(subject.number(call), call).try_for_each(&mut *take)?;
        }
        for call in subject.calls() {
            components::artifacts(subject.number(call), call).try_for_each(&mut *take)?;
        }
        for line in subject.lines() {
            take(components::line(self.store, line, self.options)?)?;
        }
        if let Subject::Receipt(tested) = subject {
            let [test_result, receipt] = &tested.statements;
            for (role, name, statement) in [
                ("test-result", "test result statement", test_result),
                ("pr-receipt", "pull request receipt statement", receipt),
            ] {
                take(components::statement(role, name, &statement.envelope))?;
            }
        }
        take(components::key(self.key))
    }

    /// Prints the whole document.
    pub(crate) fn print<W: Write>(&self, printer: &mut Printer<W>) -> Result<(), BomError> {
        self.walk(printer, &self.skeleton, &mut String::new())
    }

    fn walk<W: Write>(
        &self,
        printer: &mut Printer<W>,
        value: &Value,
        pointer: &mut String,
    ) -> Result<(), BomError> {
        let failed = BomError::Write;
        let length = pointer.len();
        match value {
            Value::Object(members) => {
                printer.begin('{').map_err(failed)?;
                for (name, member) in sorted(members) {
                    printer.name(name).map_err(failed)?;
                    pointer.push('/');
                    pointer.push_str(name);
                    self.walk(printer, member, pointer)?;
                    pointer.truncate(length);
                }
                printer.end('}').map_err(failed)
            }
            Value::Array(items) => {
                printer.begin('[').map_err(failed)?;
                let place = Place::ALL.into_iter().find(|p| p.pointer() == pointer);
                if let Some(place) = place {
                    self.each(place, &mut |item| plain(printer, &item))?;
                }
                for (i, item) in items.iter().enumerate() {
                    pointer.push('/');
                    pointer.push_str(&i.to_string());
                    self.walk(printer, item, pointer)?;
                    pointer.truncate(length);
                }
                printer.end(']').map_err(failed)
            }
            leaf => plain(printer, leaf),
        }
    }
}

/// Prints a value without long lists.
pub(crate) fn plain<W: Write>(printer: &mut Printer<W>, value: &Value) -> Result<(), BomError> {
    let failed = BomError::Write;
    match value {
        Value::Object(members) => {
            printer.begin('{').map_err(failed)?;
            for (name, member) in sorted(members) {
                printer.name(name).map_err(failed)?;
                plain(printer, member)?;
            }
            printer.end('}').map_err(failed)
        }
        Value::Array(items) => {
            printer.begin('[').map_err(failed)?;
            items.iter().try_for_each(|item| plain(printer, item))?;
            printer.end(']').map_err(failed)
        }
        Value::String(text) => printer.string(text).map_err(failed),
        other => printer.literal(&other.to_string()).map_err(failed),
    }
}

/// Members in the byte order of their names, whatever order the map keeps.
fn sorted(members: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut list: Vec<_> = members.iter().collect();
    list.sort_unstable_by_key(|(name, _)| *name);
    list
}

fn skeleton(
    subject: &Subject,
    key: &PublicKey,
    scope: Scope,
    options: &Options,
    platform: &Platform,
) -> Result<Value, BomError> {
    let version = options.spec_version.word();
    let refs = |list: &[Value]| list.iter().map(reference).map(str::to_owned).collect();
    let providers: Vec<String> = refs(&platform.providers);
    let providers: Vec<&str> = providers.iter().map(String::as_str).collect();
    let platform_refs: Vec<String> = platform.all().map(reference).map(str::to_owned).collect();
    let inputs: Vec<String> = subject
        .calls()
        .iter()
        .flat_map(|call| {
            let number = subject.number(call);
            (1..=call.inputs.len()).map(move |i| input_ref(number, i))
        })
        .collect();
    debug_assert!(artifact_ref(1, 1) != input_ref(1, 1));
    let workflow = formulation::workflow(subject)?;
    Ok(json!({
        "$schema": format!("http://cyclonedx.org/schema/bom-{version}.schema.json"),
        "annotations": described::annotations(subject, &providers)?,
        "bomFormat": "CycloneDX",
        "components": [],
        "compositions": compositions(&platform_refs, &inputs),
        "declarations": described::declarations(subject),
        "dependencies": dependencies(subject, platform, &platform_refs, &inputs),
        "formulation": [{ "bom-ref": "formula:1", "workflows": [workflow] }],
        "metadata": described::metadata(subject)?,
        "properties": properties(subject, key, scope, options),
        "specVersion": version,
        "version": 1,
    }))
}

fn compositions(platform: &[String], inputs: &[String]) -> Value {
    let composition = |name: &str, aggregate: &str, assemblies: &[String]| {
        json!({
            "aggregate": aggregate,
            "assemblies": assemblies,
            "bom-ref": format!("composition:{name}"),
        })
    };
    let mut list = Vec::new();
    if !inputs.is_empty() {
        list.push(composition("inputs", "complete", inputs));
    }
    list.push(composition("platform", "unknown", platform));
    Value::Array(list)
}

fn dependencies(
    subject: &Subject,
    platform: &Platform,
    platform_refs: &[String],
    inputs: &[String],
) -> Value {
    let entry = |reference: &str, on: Vec<&str>| {
        let mut entry = Map::new();
        put(&mut entry, "dependsOn", on);
        put(&mut entry, "ref", reference);
        Value::Object(entry)
    };
    let all = platform_refs.iter().chain(inputs).map(String::as_str);
    let mut list = vec![entry(&subject.reference(), all.collect())];
    list.extend(platform.environments.iter().map(|environment| {
        let software = platform.software.iter().map(reference);
        entry(reference(environment), software.collect())
    }));
    Value::Array(list)
}

fn properties(subject: &Subject, key: &PublicKey, scope: Scope, options: &Options) -> Value {
    let lines: Vec<String> = subject
        .lines()
        .map(|line| line.number.to_string())
        .collect();
    let mut properties = Properties::default()
        .with("bom:profile", PROFILE)
        .with("bom:kind", subject.kind().word())
        .with("bom:attach", options.attach.word());
    if let Some(name) = &options.image_name {
        properties.push("bom:imageName", name.as_str());
    }
    properties
        .with("evidence:scope", scope.word())
        .with("evidence:lines", lines.join(","))
        .with("evidence:signingKey", key.id())
        .value()
}
