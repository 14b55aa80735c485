//! How it was made: workflows, tasks, their steps, inputs, outputs and times.

use serde_json::{Map, Value, json};

use crate::{
    components::{artifact_ref, input_ref},
    facts::{CallFacts, Step, Stream},
    fault::BomError,
    subject::{Session, Subject},
    value::{Properties, put, time},
};

/// The workflow of a subject; a session's tasks are left out, see [`task`].
pub(crate) fn workflow(subject: &Subject) -> Result<Value, BomError> {
    let [call, ..] = subject.calls() else {
        return Err(BomError::Internal("a subject without a call".to_owned()));
    };
    let task_type = match subject {
        Subject::Session(session) => return session_workflow(session, subject),
        Subject::Receipt(_) => "test",
        Subject::Run(_) => "other",
    };
    let mut workflow = call_members(1, call)?;
    let digest = &call.record.record_sha256;
    put(&mut workflow, "bom-ref", format!("workflow:{digest}"));
    put(&mut workflow, "name", "sandboxed run");
    put(
        &mut workflow,
        "properties",
        payload(Properties::default(), call).value(),
    );
    put(&mut workflow, "taskTypes", json!([task_type]));
    put(&mut workflow, "uid", digest.as_str());
    Ok(Value::Object(workflow))
}

fn session_workflow(session: &Session, subject: &Subject) -> Result<Value, BomError> {
    let fingerprint = session.fingerprint();
    let mut previous: Option<u64> = None;
    let mut dependencies = Vec::new();
    for call in subject.calls() {
        let sequence = call.record.sequence;
        let mut entry = Map::new();
        put(&mut entry, "ref", task_ref(sequence));
        if let Some(previous) = previous {
            put(&mut entry, "dependsOn", json!([task_ref(previous)]));
        }
        previous = Some(sequence);
        dependencies.push(Value::Object(entry));
    }
    let (first, last) = (subject.calls().first(), subject.calls().last());
    Ok(json!({
        "bom-ref": format!("workflow:{fingerprint}"),
        "name": "session",
        "taskDependencies": dependencies,
        "taskTypes": ["other"],
        "tasks": [],
        "timeEnd": time(last.map_or(0, |call| call.record.ended_unix_ms))?,
        "timeStart": time(first.map_or(0, |call| call.record.started_unix_ms))?,
        "uid": fingerprint,
    }))
}

fn task_ref(sequence: u64) -> String {
    format!("task:{sequence}")
}

/// The task of one call of a session.
pub(crate) fn task(call: &CallFacts) -> Result<Value, BomError> {
    let sequence = call.record.sequence;
    let mut task = call_members(sequence, call)?;
    put(&mut task, "bom-ref", task_ref(sequence));
    put(&mut task, "name", format!("call {sequence}"));
    let mut properties = Properties::default();
    record(&mut properties, call);
    put(&mut task, "properties", payload(properties, call).value());
    put(&mut task, "taskTypes", json!(["other"]));
    put(&mut task, "uid", call.record.record_sha256.as_str());
    Ok(Value::Object(task))
}

/// The record's fields that say something, in their order.
pub(crate) fn record(properties: &mut Properties, call: &CallFacts) {
    let record = &call.record;
    let number = |value: i128| match value {
        0 => String::new(),
        value => value.to_string(),
    };
    for (name, value) in [
        ("version", number(record.version.into()).as_str()),
        ("recordSha256", &record.record_sha256),
        ("requestSha256", &record.request_sha256),
        ("resultSha256", &record.result_sha256),
        ("provider", &record.provider),
        ("isolation", &record.isolation),
        ("environment", &record.environment),
        ("softwareIdentity", &record.software_identity),
        ("softwareRuleId", &record.software_rule_id),
        ("policy", &record.policy),
        ("startedUnixMs", &number(record.started_unix_ms.into())),
        ("endedUnixMs", &number(record.ended_unix_ms.into())),
        ("session", &record.session),
        ("sequence", &number(record.sequence.into())),
        ("previousSha256", &record.previous_sha256),
        ("unanswered", &record.unanswered),
    ] {
        properties.push_some(&format!("record:{name}"), value);
    }
}

/// What was asked for and how it came out.
fn payload(mut properties: Properties, call: &CallFacts) -> Properties {
    if let Some(kind) = call.payload {
        properties.push("payload", kind.name());
    }
    properties.push("timeoutMs", call.timeout_ms);
    let floor = match call.minimum_isolation.as_str() {
        "" => "none",
        floor => floor,
    };
    properties.push("minimumIsolation", floor);
    properties.push_some("grantProfile", &call.grant_profile);
    properties.push_some("outcome", call.outcome.unwrap_or_default());
    properties
}

/// Inputs, outputs, steps and times of a call.
fn call_members(number: u64, call: &CallFacts) -> Result<Map<String, Value>, BomError> {
    let resource = |reference: String| json!({ "resource": { "ref": reference } });
    let output =
        |reference: String, kind: &str| json!({ "resource": { "ref": reference }, "type": kind });
    let inputs = (1..=call.inputs.len()).map(|i| resource(input_ref(number, i)));
    let artifacts = (1..=call.artifacts.len()).map(|i| output(artifact_ref(number, i), "artifact"));
    let line = output(format!("line:{}", call.line.number), "attestation");
    let mut members = Map::new();
    put(&mut members, "inputs", inputs.collect::<Vec<_>>());
    put(
        &mut members,
        "outputs",
        artifacts.chain([line]).collect::<Vec<_>>(),
    );
    let kind = call.payload.map_or("", |kind| match kind {
        plimsoll_wire::Kind::Javascript => "snippet",
        other => other.name(),
    });
    let steps = call.steps.iter().enumerate();
    let steps = steps.map(|(i, one)| step(i.saturating_add(1), kind, one));
    put(&mut members, "steps", steps.collect::<Vec<_>>());
    put(&mut members, "timeEnd", time(call.record.ended_unix_ms)?);
    put(
        &mut members,
        "timeStart",
        time(call.record.started_unix_ms)?,
    );
    Ok(members)
}

fn step(number: usize, kind: &str, step: &Step) -> Value {
    let mut object = Map::new();
    match &step.command {
        Some(command) => {
            put(&mut object, "commands", json!([{ "executed": command }]));
            put(&mut object, "name", format!("step {number}"));
        }
        None => put(&mut object, "name", kind),
    }
    let mut properties = Properties::default();
    if let Some((code, timed_out)) = step.exit {
        properties.push("exitCode", code);
        properties.push("timedOut", timed_out);
    }
    if let Some((width, rows, outputs)) = step.module {
        properties.push("module:width", width);
        properties.push("module:rows", rows);
        properties.push("module:outputsSha256", outputs);
    }
    stream(&mut properties, "stdout", &step.stdout);
    stream(&mut properties, "stderr", &step.stderr);
    if let Some((started, ended)) = step.interpreter {
        properties.push("interpreterStarted", started);
        properties.push("interpreterEnded", ended);
    }
    put(&mut object, "properties", properties.value());
    Value::Object(object)
}

fn stream(properties: &mut Properties, name: &str, stream: &Stream) {
    properties.push(&format!("{name}Bytes"), stream.bytes);
    properties.push(&format!("{name}Sha256"), stream.sha256);
    if let Some(truncated) = stream.truncated {
        properties.push(&format!("{name}Truncated"), truncated);
    }
}
