//! From a provider's output to the answer, exactly as it will be sent.
//!
//! Repair and canonical NaNs come here, before the record is computed: a digest
//! over anything but what is sent could not be checked by a caller.

use plimsoll_wire::{
    Kind,
    proto::{
        Artifact, CellResult, EnumValue, JavaScriptResult, ModuleResult, ModuleRowResult,
        ProjectResult, RunResponse, StepResult, run_response::Result as Wire,
    },
    repair,
};

use crate::provider::{
    CellOutput, ModuleOutput, Output, ProjectOutput, ProviderError, RunOutput, ScriptOutput,
    StepOutput, tier_name,
};

/// The answer without its record. `stated` is the provider's environment
/// identity, taken when the run reports none; there is no such stand-in for the
/// software identity.
pub(super) fn build(
    output: RunOutput,
    asked: Kind,
    sandbox: &str,
    stated: impl FnOnce() -> String,
    duration_ms: i64,
) -> Result<RunResponse, ProviderError> {
    if output.output.kind() != asked {
        return Err(ProviderError::internal(format!(
            "the provider answered a {} run with a {} result",
            asked.name(),
            output.output.kind().name()
        )));
    }
    let mut response = RunResponse {
        sandbox: sandbox.to_owned(),
        isolation: tier_name(output.tier).to_owned(),
        duration_ms,
        software_identity: output.software_identity,
        environment: if output.environment.is_empty() {
            stated()
        } else {
            output.environment
        },
        result: Some(match output.output {
            Output::Javascript(script) => Wire::Javascript(Box::new(javascript(script))),
            Output::Project(project) => Wire::Project(Box::new(self::project(project))),
            Output::Module(module) => Wire::Module(Box::new(self::module(module))),
            Output::Cell(cell) => Wire::Cell(Box::new(self::cell(cell))),
        }),
        ..Default::default()
    };
    repair::canonical_nans(&mut response);
    Ok(response)
}

impl Output {
    fn kind(&self) -> Kind {
        match self {
            Output::Javascript(_) => Kind::Javascript,
            Output::Project(_) => Kind::Project,
            Output::Module(_) => Kind::Module,
            Output::Cell(_) => Kind::Cell,
        }
    }
}

fn javascript(script: ScriptOutput) -> JavaScriptResult {
    JavaScriptResult {
        stdout: script.stdout.bytes,
        stderr: script.stderr.bytes,
        exit_code: script.exit_code,
        timed_out: script.timed_out,
        stdout_truncated: script.stdout.truncated,
        stderr_truncated: script.stderr.truncated,
        ..Default::default()
    }
}

fn project(project: ProjectOutput) -> ProjectResult {
    ProjectResult {
        steps: project.steps.into_iter().map(step).collect(),
        outcome: EnumValue::from(project.outcome),
        artifacts: project
            .artifacts
            .into_iter()
            .map(|artifact| Artifact {
                path: repair::utf8(&artifact.path),
                content: artifact.content,
            })
            .collect(),
        outcome_detail: repair::utf8(&project.outcome_detail),
        artifacts_truncated: project.artifacts_truncated,
        ..Default::default()
    }
}

fn step(step: StepOutput) -> StepResult {
    StepResult {
        command: repair::utf8(&step.command),
        stdout: step.script.stdout.bytes,
        stderr: step.script.stderr.bytes,
        exit_code: step.script.exit_code,
        timed_out: step.script.timed_out,
        duration_ms: step.duration_ms,
        stdout_truncated: step.script.stdout.truncated,
        stderr_truncated: step.script.stderr.truncated,
    }
}

fn module(module: ModuleOutput) -> ModuleResult {
    ModuleResult {
        runs: module
            .runs
            .into_iter()
            .map(|row| ModuleRowResult {
                status: row.status,
                outputs: row.outputs,
            })
            .collect(),
        width: module.width,
        outcome: EnumValue::from(module.outcome),
        outcome_detail: repair::utf8(&module.outcome_detail),
        stdout: module.stdout,
        stderr: module.stderr,
    }
}

fn cell(cell: CellOutput) -> CellResult {
    CellResult {
        stdout: cell.script.stdout.bytes,
        stderr: cell.script.stderr.bytes,
        exit_code: cell.script.exit_code,
        timed_out: cell.script.timed_out,
        stdout_truncated: cell.script.stdout.truncated,
        stderr_truncated: cell.script.stderr.truncated,
        interpreter_started: cell.interpreter_started,
        interpreter_ended: cell.interpreter_ended,
    }
}
