//! The start-up smoke test: the boundary proved by behaviour, in throw-away
//! containers made like those of runs.

use std::{path::PathBuf, sync::Arc, time::Instant};

use plimsoll_wire::{
    Tier,
    proto::{ProjectFile, ProjectOutcome, ProjectRun},
};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::{
    body::Container,
    call::Call,
    container::{Bounds, Ending},
    execution::{Execution, Role},
    fault::during,
    launch::{self, Marker},
    limits::{SMOKE_ANSWER_CAP, SMOKE_RUN},
    project,
    smoke_judge::{self, Promised},
    smoke_socket::PingSocket,
    snippet,
    state::State,
};
use crate::{
    log::Log,
    provider::{Answer, ProviderError, Teardown},
    surface,
};

const STORAGE_PROBE: &str = include_str!("smoke_storage.js");
const RUNNER_PROBE: &str = include_str!("smoke_runner.js");
const PREFIX: &str = "crsbx-smoke-";
const PIDS_PREFIX: &str = "crsbx-smoke-pids-";
const SOCKET: &str = "/run/host-api.sock";
const SOCKET_CURE: &str = "; a socket of the host was mounted into that container: if its mount is what failed, register runsc with --host-uds=open and restart the engine";
const GREETING: &str = "plimsoll-snippet-ok";
/// Languages by their names on the wire, and how each answers with its name.
const LANGUAGES: &str = "unset NODE_OPTIONS; node -e \"console.log('javascript')\" && { ! command -v python3 >/dev/null || python3 -c \"print('python')\"; }";
/// An image's own options are for its projects: one may name a file that a
/// project brings and these do not.
const REACH: &str = "unset NODE_OPTIONS; node probe.js";

/// Proves everything, then takes note of which images were proved.
pub(super) async fn run(state: &Arc<State>, log: &Log) -> Answer<()> {
    let execution = state.preflight().await?;
    let smoke = Smoke {
        state,
        execution: &execution,
        log,
    };
    for (index, role) in Role::ALL.into_iter().enumerate() {
        smoke
            .storage(role, index == 0)
            .await
            .map_err(|error| smoke.failed(role, &error))?;
    }
    let languages = smoke
        .project()
        .await
        .map_err(|error| smoke.failed(Role::Project, &error))?;
    smoke
        .snippet()
        .await
        .map_err(|error| smoke.failed(Role::Snippet, &error))?;
    if execution.tier == Tier::Kernel {
        smoke
            .process_limit()
            .await
            .map_err(|error| smoke.failed(Role::Snippet, &error))?;
    }
    state.prove(&execution, languages);
    Ok(())
}

struct Smoke<'a> {
    state: &'a Arc<State>,
    execution: &'a Execution,
    log: &'a Log,
}

impl Smoke<'_> {
    fn failed(&self, role: Role, error: &ProviderError) -> ProviderError {
        let runtime = &self.execution.maker.runtime.name;
        ProviderError::internal(format!(
            "smoke failed for image {:?} under runtime {runtime:?}: {}",
            self.execution.image(role).reference,
            error.full_text(),
        ))
    }

    fn call(&self) -> Call {
        Call {
            budget: SMOKE_RUN,
            deadline: Instant::now() + 2 * SMOKE_RUN,
            caller_gone: CancellationToken::new(),
            capacity: None,
            teardown: Teardown::default(),
            prefix: PREFIX,
        }
    }

    /// What a guest can write to, see and connect to.
    async fn storage(&self, role: Role, first: bool) -> Answer<()> {
        let gvisor = self.execution.tier == Tier::Kernel;
        let socket = if first {
            let made = PingSocket::make(&std::env::temp_dir());
            Some(made.map_err(|error| during("making a socket", error))?)
        } else {
            None
        };
        let storage = self.execution.storage(role);
        let arguments = launch::clean(&snippet::NODE);
        let container = Container {
            image: self.execution.image(role),
            arguments: &arguments,
            storage,
            lifetime: 2 * SMOKE_RUN,
            socket: socket.as_ref().map(PingSocket::path),
            attached: true,
        };
        let mut program = String::new();
        if first {
            program.push_str(&format!("globalThis.PLIMSOLL_SOCKET = {SOCKET:?};\n"));
        }
        if first && gvisor {
            program.push_str("globalThis.PLIMSOLL_BOOT = true;\n");
        }
        program.push_str(STORAGE_PROBE);
        let stdout = self.probe(&container, program).await?;
        let promised = Promised {
            storage,
            uid: self.execution.maker.lockdown.uid,
            pids: self.execution.maker.lockdown.pids,
            gvisor,
            socket: first,
        };
        let boot = smoke_judge::judge(&stdout, &promised).map_err(ProviderError::internal)?;
        if !boot.is_empty() {
            self.log
                .info("gVisor's first line")
                .text("boot", &boot)
                .end();
        }
        Ok(())
    }

    /// Runs one of our own programs and returns what it printed. The container
    /// is gone before this returns.
    async fn probe(&self, container: &Container<'_>, program: String) -> Answer<Vec<u8>> {
        let bounds = Bounds {
            budget: SMOKE_RUN,
            deadline: Instant::now() + 2 * SMOKE_RUN,
            caller_gone: CancellationToken::new(),
            stdout_cap: SMOKE_ANSWER_CAP,
            stderr_cap: 4096,
        };
        let marker = Marker::fresh().map_err(|error| during("making a marker", error))?;
        let ready = self.execution.maker.make(PREFIX, container).await?;
        if let Err(error) = ready.sandbox.start().await {
            let _ = ready.sandbox.remove(()).await;
            // A gVisor that may not touch host sockets does not even start.
            return Err(match container.socket {
                Some(_) => error.and_public(SOCKET_CURE),
                None => error,
            });
        }
        let ended = ready
            .feed(vec![Zeroizing::new(program.into_bytes())])
            .ended(&marker, &bounds)
            .await;
        let _ = ended.sandbox.remove(()).await;
        match ended.ending {
            Ending::Exited(0) => Ok(ended.stdout.bytes),
            Ending::Exited(code) => Err(ProviderError::internal(format!(
                "the storage probe exited {code}"
            ))),
            Ending::Broken(error) => Err(error),
            Ending::Budget | Ending::Deadline | Ending::Canceled => Err(ProviderError::internal(
                "the storage probe did not answer in time",
            )),
        }
    }

    /// A real project: a step cannot reach the runner; the languages answer.
    async fn project(&self) -> Answer<Vec<String>> {
        let open_descriptors = self.state.settings.open_runner_fds;
        let run = ProjectRun {
            files: vec![ProjectFile {
                path: "probe.js".to_owned(),
                content: RUNNER_PROBE.to_owned(),
            }],
            steps: vec![REACH.to_owned(), LANGUAGES.to_owned()],
            ..Default::default()
        };
        let made = project::run(self.execution, None, run, open_descriptors, self.call());
        let output = made.await?;
        self.state.living.settled().await;
        if output.outcome != ProjectOutcome::PROJECT_OUTCOME_COMPLETED {
            return Err(ProviderError::internal(format!(
                "a project did not complete: {}",
                String::from_utf8_lossy(&output.outcome_detail)
            )));
        }
        let [reached, languages] = output.steps.as_slice() else {
            let said = output
                .steps
                .last()
                .map(|step| step.script.stderr.bytes.clone());
            return Err(ProviderError::internal(format!(
                "a project's step failed: {}",
                surface::cut(&String::from_utf8_lossy(&said.unwrap_or_default()))
            )));
        };
        let open: Vec<String> = serde_json::from_slice(&reached.script.stdout.bytes)
            .map_err(|error| during("reading what a step reached", error))?;
        let allowed = |name: &str| open_descriptors && name.starts_with("fd/");
        if let Some(name) = open.iter().find(|name| !allowed(name)) {
            return Err(ProviderError::internal(format!(
                "a step can reach the runner's {name}: the runner check failed"
            )));
        }
        let said = String::from_utf8_lossy(&languages.script.stdout.bytes).into_owned();
        let names: Vec<String> = said.lines().map(str::to_owned).collect();
        let known = |name: &String| name == "javascript" || name == "python";
        if languages.script.exit_code != 0
            || !names.iter().any(|name| name == "javascript")
            || !names.iter().all(known)
        {
            return Err(ProviderError::internal(
                "JavaScript did not answer in a step",
            ));
        }
        Ok(names)
    }

    /// A real snippet.
    async fn snippet(&self) -> Answer<()> {
        let code = format!("console.log({GREETING:?})");
        let output = snippet::run(self.execution, None, code, &self.call()).await?;
        self.state.living.settled().await;
        if output.exit_code != 0 || output.stdout.bytes != format!("{GREETING}\n").as_bytes() {
            return Err(ProviderError::internal(format!(
                "a snippet exited {} and wrote {:?}",
                output.exit_code,
                surface::cut(&String::from_utf8_lossy(&output.stderr.bytes))
            )));
        }
        Ok(())
    }

    /// Under gVisor the guest sees its own kernel's limit, so the host's is read.
    async fn process_limit(&self) -> Answer<()> {
        let arguments = launch::clean(&["sleep", "30"]);
        let container = Container {
            image: &self.execution.snippet,
            arguments: &arguments,
            storage: self.execution.storage(Role::Snippet),
            lifetime: 2 * SMOKE_RUN,
            socket: None,
            attached: false,
        };
        let maker = &self.execution.maker;
        let sandbox = maker.create(PIDS_PREFIX, &container).await?;
        let read = async {
            sandbox.read_back(false).await?;
            let engine = sandbox.engine();
            sandbox.start().await?;
            let seen = engine.inspect(sandbox.id()).await;
            let seen = seen.map_err(|fault| during("asking for a process", fault))?;
            Ok(seen.state.and_then(|state| state.pid).unwrap_or(0))
        };
        let limit = match read.await {
            Ok(pid) => {
                let id = sandbox.id().to_owned();
                tokio::task::spawn_blocking(move || host_limit(pid, &id))
                    .await
                    .unwrap_or_else(|lost| Err(surface::lost_text(lost)))
                    .map_err(ProviderError::internal)
            }
            Err(error) => Err(error),
        };
        let _ = sandbox.remove(()).await;
        let wanted = self.execution.maker.lockdown.pids;
        match limit? {
            limit if limit == wanted.to_string() => Ok(()),
            limit => Err(ProviderError::internal(format!(
                "the host bounds the container's processes at {limit:?}, not {wanted}"
            ))),
        }
    }
}

/// The process limit of the cgroup of a process of this host.
fn host_limit(pid: i64, id: &str) -> Result<String, String> {
    if pid <= 0 {
        return Err("the engine names no process of the container".to_owned());
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))
        .map_err(|error| format!("the container's process cannot be looked at: {error}"))?;
    let directory = cgroup(&text).ok_or("the container's process has no pids cgroup")?;
    let path = directory.to_string_lossy().into_owned();
    if !path.contains(id) {
        return Err("the engine's process numbers are not this host's".to_owned());
    }
    let limit = std::fs::read_to_string(directory.join("pids.max"))
        .map_err(|error| format!("the container's process limit cannot be read: {error}"))?;
    Ok(limit.trim().to_owned())
}

/// Where a process's pids cgroup is, version 1 or 2.
fn cgroup(text: &str) -> Option<PathBuf> {
    let mut unified = None;
    for line in text.lines() {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|name| name == "pids") {
            return Some(PathBuf::from("/sys/fs/cgroup/pids").join(path));
        }
        if controllers.is_empty() {
            unified = Some(PathBuf::from("/sys/fs/cgroup").join(path));
        }
    }
    unified
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_of_cgroups() {
        let v1 = "12:devices:/docker/x\n8:pids:/docker/abc\n0::/system\n";
        assert_eq!(
            cgroup(v1).unwrap(),
            PathBuf::from("/sys/fs/cgroup/pids/docker/abc")
        );
        let v2 = "0::/system.slice/docker-abc.scope\n";
        assert_eq!(
            cgroup(v2).unwrap(),
            PathBuf::from("/sys/fs/cgroup/system.slice/docker-abc.scope")
        );
        assert_eq!(cgroup(""), None);
        assert!(host_limit(0, "x").is_err());
        let own = i64::from(std::process::id());
        assert!(host_limit(own, "no-such-container-id").is_err());
    }
}
