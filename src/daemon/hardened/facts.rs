//! What the policy needs to know of the environment, read while it is there.

use crate::config::{ConfigError, Reader, Variable, variable as v};

/// The dimensions of the envelope a provider may have to bound.
pub(super) const MEMORY: &Variable = &v::SANDBOX_MEMORY_MB;
pub(super) const CPUS: &Variable = &v::SANDBOX_CPUS;
pub(super) const PIDS: &Variable = &v::SANDBOX_PIDS;
pub(super) const DISK: &Variable = &v::SANDBOX_DISK_MB;
pub(super) const TOTAL_MEMORY: &Variable = &v::SANDBOX_TOTAL_MEMORY_MB;

/// The variables the policy judges, without any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub(super) insecure: bool,
    pub(super) pinned: bool,
    pub(super) unconfined: bool,
    pub(super) store_image: bool,
    pub(super) connect: bool,
    pub(super) template: bool,
    /// Names of the bounds set to a number above 0.
    pub(super) bounds: Vec<&'static str>,
}

impl Facts {
    /// Reads them.
    ///
    /// # Errors
    /// A value that breaks the rule of its variable.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Facts, ConfigError> {
        let is_set = |variable| reader.text(variable).map(|text| !text.is_empty());
        let is = |variable, word: &str| reader.text(variable).map(|t| t.eq_ignore_ascii_case(word));
        let mut bounds = Vec::new();
        for variable in [MEMORY, CPUS, PIDS, DISK, TOTAL_MEMORY] {
            // Not a number is no bound; the setting itself is refused elsewhere.
            let number: Option<f64> = reader.text(variable)?.parse().ok();
            if number.is_some_and(|number| number.is_finite() && number > 0.0) {
                bounds.push(variable.name);
            }
        }
        Ok(Facts {
            insecure: is_set(&v::PLIMSOLL_INSECURE)?,
            pinned: reader.opt_in(&v::SANDBOX_REQUIRE_PINNED_IMAGES)?,
            unconfined: is(&v::SANDBOX_DOCKER_SECCOMP, "unconfined")?,
            store_image: is_set(&v::SANDBOX_DOCKERCLOUD_STORE_IMAGE)?,
            connect: is(&v::SANDBOX_DOCKERCLOUD_API, "connect")?,
            template: is_set(&v::E2B_TEMPLATE)?,
            bounds,
        })
    }

    pub(super) fn has_bound(&self, variable: &Variable) -> bool {
        self.bounds.contains(&variable.name)
    }
}
