//! One preflight: evidence from this host, the engine and the images, in a
//! fixed order, before any container is made.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use bollard::models::SystemInfo;

use super::{
    accounts,
    body::Lockdown,
    container::Maker,
    endpoint,
    engine::Engine,
    execution::{Execution, Role},
    fault::{during, unproven},
    host_dir::{HostDir, TAMPERED},
    image::{self, Image},
    removal::Living,
    runtime::Runtime,
    seccomp,
    settings::DockerSettings,
    state::Proven,
    storage,
};
use crate::{
    config::variable,
    provider::{Answer, ProviderError, Resources},
};

/// What is found once and kept for the process's life.
pub(super) struct Ground {
    pub(super) host: HostDir,
    pub(super) engine: Engine,
    pub(super) lockdown: Arc<Lockdown>,
}

impl Ground {
    /// Makes the private directory and pins the engine. Reads files only.
    fn lay(settings: &DockerSettings, resources: &Resources) -> Answer<Ground> {
        let gvisor = settings.is_gvisor();
        let seccomp = if gvisor {
            None
        } else {
            seccomp::option(&settings.seccomp).map_err(refused)?
        };
        let host = HostDir::make(&std::env::temp_dir())
            .map_err(|error| during("making the private directory", error))?;
        let socket: PathBuf = endpoint::find(&settings.client).map_err(refused)?;
        let engine = Engine::new(socket).map_err(refused)?;
        let lockdown = Arc::new(Lockdown {
            runtime: settings.runtime.clone(),
            seccomp,
            uid: settings.guest_uid,
            memory_mb: resources.memory_mb,
            cpus: resources.cpus,
            pids: resources.pids,
            resolver: host.resolver(),
            owner: host.alive(),
        });
        Ok(Ground {
            host,
            engine,
            lockdown,
        })
    }
}

/// What a probe looks at.
pub(super) struct Probe<'a> {
    pub(super) settings: &'a DockerSettings,
    pub(super) resources: &'a Resources,
    pub(super) ground: Option<Arc<Ground>>,
    pub(super) living: &'a Living,
    pub(super) proven: Option<&'a Proven>,
}

/// What it found; the ground also when the rest failed.
pub(super) struct Found {
    pub(super) ground: Option<Arc<Ground>>,
    pub(super) execution: Answer<Execution>,
}

impl Probe<'_> {
    pub(super) async fn run(self) -> Found {
        let work_mb = match self.host_is_fit() {
            Ok(work_mb) => work_mb,
            Err(error) => {
                return Found {
                    ground: self.ground,
                    execution: Err(error),
                };
            }
        };
        let ground = match &self.ground {
            Some(ground) => Arc::clone(ground),
            None => match Ground::lay(self.settings, self.resources) {
                Ok(ground) => Arc::new(ground),
                Err(error) => {
                    return Found {
                        ground: None,
                        execution: Err(error),
                    };
                }
            },
        };
        let execution = self.engine_is_fit(&ground, work_mb).await;
        Found {
            ground: Some(ground),
            execution,
        }
    }

    /// The size of `/work` in MiB, when settings and host allow guests at all.
    fn host_is_fit(&self) -> Answer<u64> {
        let settings = self.settings;
        for (reference, variable) in self.references() {
            if !DockerSettings::names_an_image(reference) {
                return Err(refused(format!("{reference:?} is not an image reference"))
                    .of_setting(variable));
            }
            if settings.pinned && !DockerSettings::is_pinned(reference) {
                return Err(refused(format!(
                    "SANDBOX_REQUIRE_PINNED_IMAGES is set and {reference:?} does not end in @sha256: and a digest"
                ))
                .of_setting(variable));
            }
        }
        let work_mb = storage::work_mb(self.resources.disk_mb).ok_or_else(|| {
            refused("SANDBOX_DISK_MB leaves less than 1 MiB for /work beside /tmp and /dev/shm")
                .of_setting(variable::SANDBOX_DISK_MB.name)
        })?;
        accounts::check(
            settings.guest_uid,
            Path::new("/etc/passwd"),
            Path::new("/etc/group"),
        )
        .map_err(refused)?;
        Ok(work_mb)
    }

    fn references(&self) -> [(&str, &'static str); 2] {
        [
            (&self.settings.image, variable::SANDBOX_DOCKER_IMAGE.name),
            (
                &self.settings.project_image,
                variable::SANDBOX_DOCKER_PROJECT_IMAGE.name,
            ),
        ]
    }

    async fn engine_is_fit(&self, ground: &Ground, work_mb: u64) -> Answer<Execution> {
        if !ground.host.is_intact() {
            return Err(refused(TAMPERED));
        }
        let engine = &ground.engine;
        // First of all: the others are asked in the version it finds.
        let version = engine
            .negotiate()
            .await
            .map_err(|fault| during("asking the engine", fault))?;
        // At once, judged in order: a run may be waiting for this.
        let (info, snippet, project) = tokio::join!(
            engine.info(),
            self.image(engine, &self.settings.image),
            self.image(engine, &self.settings.project_image),
        );
        let info = info.map_err(|fault| during("asking the engine", fault))?;
        let runtime = self.runtime(&info)?;
        let (mut snippet, mut project) = (snippet?, project?);
        let mut platform = match self.settings.client.platform.as_str() {
            "" => version.platform,
            chosen => chosen.to_owned(),
        };
        let mut answered = true;
        for image in [&mut snippet, &mut project] {
            answered &= self.on_platform(engine, image, &platform).await?;
        }
        if !answered {
            if is_containerd_store(&info) {
                return Err(refused(
                    "the engine keeps images in containerd and does not inspect them by platform",
                ));
            }
            if !self.settings.client.platform.is_empty() {
                return Err(refused(
                    "DOCKER_DEFAULT_PLATFORM is set and this engine does not inspect images by platform",
                ));
            }
            platform.clear();
            snippet.software.clear();
            project.software.clear();
        }
        if let Some(proven) = self.proven {
            for role in Role::ALL {
                let image = match role {
                    Role::Snippet => &snippet,
                    Role::Project => &project,
                };
                proven.holds(role, image).map_err(unproven)?;
            }
        }
        Ok(Execution {
            tier: runtime.tier(),
            maker: Maker {
                engine: engine.clone(),
                lockdown: Arc::clone(&ground.lockdown),
                platform,
                runtime,
                living: self.living.clone(),
            },
            snippet,
            project,
            work_mb,
        })
    }

    /// The runtime that the settings select, as it was proven if it was.
    fn runtime(&self, info: &SystemInfo) -> Answer<Arc<Runtime>> {
        let runtime = Runtime::of(&self.settings.runtime, info).map_err(refused)?;
        if let Some(proven) = self.proven {
            proven.runs(&runtime).map_err(refused)?;
        }
        Ok(Arc::new(runtime))
    }

    async fn image(&self, engine: &Engine, reference: &str) -> Answer<Image> {
        let seen = engine.image(reference).await.map_err(|fault| {
            if fault.is_missing() {
                refused(format!(
                    "the docker image {reference:?} is not on the engine"
                ))
            } else {
                during("inspecting an image", fault)
            }
        })?;
        image::judge(reference, seen)
            .map_err(|fault| refused(format!("the docker image {reference:?}: {fault}")))
    }

    /// Whether the engine answers what the image is for a platform.
    async fn on_platform(
        &self,
        engine: &Engine,
        image: &mut Image,
        platform: &str,
    ) -> Answer<bool> {
        let seen = engine
            .image_on(&image.id, platform)
            .await
            .map_err(|fault| during("inspecting an image by platform", fault))?;
        let Some(seen) = seen else { return Ok(false) };
        let reference = image.reference.clone();
        image::on_platform(image, platform, seen)
            .map_err(|fault| refused(format!("the docker image {reference:?}: {fault}")))?;
        Ok(true)
    }
}

fn is_containerd_store(info: &SystemInfo) -> bool {
    info.driver_status
        .iter()
        .flatten()
        .any(|entry| entry.as_slice() == ["driver-type", "io.containerd.snapshotter.v1"])
}

/// A preflight's refusal. Its words name images, paths and sockets: they are
/// for the log.
fn refused(fault: impl std::fmt::Display) -> ProviderError {
    ProviderError::internal(fault.to_string())
}
