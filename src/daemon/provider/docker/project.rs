//! Projects: files and steps, carried out by the runner inside the image.

use plimsoll_runner::{
    Asked, Ending, File, GUARD_PATH, MAX_OUTPUT_BYTES, OPEN_DESCRIPTORS, Plan, RUNNER_PATH,
    ReportKey, Step, Verdict,
};
use plimsoll_wire::proto::ProjectRun;

use super::{
    call::{Call, Command, Exit, Outcome},
    execution::{Execution, Role},
    fault::during,
    limits::{MIB, PROJECT_BACKSTOP, STREAM_CAP},
    pool::Pool,
};
use crate::provider::{Answer, Artifact, ProjectOutput, ScriptOutput, StepOutput, Stream};

/// The runner's own environment: the guard and nothing of the image.
pub(super) fn environment() -> Vec<String> {
    vec![format!("LD_PRELOAD={GUARD_PATH}")]
}

/// The runner's command.
pub(super) fn arguments(open_descriptors: bool) -> Vec<&'static str> {
    let mut arguments = vec!["node", RUNNER_PATH];
    if open_descriptors {
        arguments.push(OPEN_DESCRIPTORS);
    }
    arguments
}

/// Runs a project. `call` has the project's own budget; the container gets a
/// little more, so that the runner can report the step that used it up.
pub(super) async fn run(
    execution: &Execution,
    pool: Option<&Pool>,
    project: ProjectRun,
    open_descriptors: bool,
    mut call: Call,
) -> Answer<ProjectOutput> {
    let key = ReportKey::fresh().map_err(|error| during("making a report key", error))?;
    let image = execution.image(Role::Project);
    let files: Vec<File> = project
        .files
        .into_iter()
        .map(|file| File {
            path: file.path,
            content: file.content,
        })
        .collect();
    let plan = Plan {
        files: &files,
        steps: &project.steps,
        step_timeout: call.budget,
        artifacts: &project.artifacts,
        host_client: None,
        env: &image.environment,
        key: &key,
    };
    let input = plan
        .to_json()
        .map_err(|error| during("writing a plan", error))?;
    drop(files);
    call.budget += PROJECT_BACKSTOP;
    let environment = environment();
    let arguments = arguments(open_descriptors);
    let command = Command {
        role: Role::Project,
        environment: &environment,
        arguments: &arguments,
        input,
        stdout_cap: MAX_OUTPUT_BYTES,
        stderr_cap: STREAM_CAP,
    };
    let Outcome {
        exit,
        stdout,
        out_of_memory,
        ..
    } = call.run(execution, pool, command).await?;
    let limit = execution.maker.lockdown.memory_mb.saturating_mul(MIB);
    let ending = match exit {
        Exit::Budget => Ending::Deadline,
        Exit::Code(code) => Ending::Exited {
            status: Some(code.into()),
            out_of_memory: out_of_memory.then_some(limit),
        },
    };
    // Up to 16 MiB are authenticated and decoded: not on a thread that answers.
    let asked = Asked {
        steps: project.steps,
        artifacts: project.artifacts,
    };
    let judge = move || Verdict::of(&stdout.bytes, &key, ending, &asked);
    let verdict = tokio::task::spawn_blocking(judge)
        .await
        .map_err(|lost| during("reading a report", lost))?;
    Ok(output(verdict))
}

fn output(verdict: Verdict) -> ProjectOutput {
    ProjectOutput {
        outcome: verdict.outcome,
        outcome_detail: verdict.detail.into_bytes(),
        steps: verdict.steps.into_iter().map(step).collect(),
        artifacts: verdict
            .artifacts
            .into_iter()
            .map(|artifact| Artifact {
                path: artifact.path,
                content: artifact.content,
            })
            .collect(),
        artifacts_truncated: verdict.artifacts_truncated,
    }
}

fn step(step: Step) -> StepOutput {
    StepOutput {
        command: step.command,
        script: ScriptOutput {
            stdout: Stream {
                bytes: step.stdout,
                truncated: step.stdout_truncated,
            },
            stderr: Stream {
                bytes: step.stderr,
                truncated: step.stderr_truncated,
            },
            exit_code: step.exit_code,
            timed_out: step.timed_out,
        },
        duration_ms: step.duration_ms,
    }
}
