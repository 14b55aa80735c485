//! Why a setting is refused. Restarting cannot help against any of these.

/// A setting, or a combination of settings, that is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A value breaks the rule of its variable.
    #[error("{variable}={value:?}: {fault}")]
    Value {
        /// The variable.
        variable: &'static str,
        /// Its value as set.
        value: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A secret value breaks the rule of its variable; the value is not shown.
    #[error("{variable}: {fault}")]
    Secret {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        fault: Fault,
    },
    /// No provider has this name.
    #[error("SANDBOX_PROVIDER={value:?}: no such provider; known are {known}")]
    UnknownProvider {
        /// The name as set.
        value: String,
        /// The names that exist, with commas.
        known: String,
    },
    /// A provider this build does not hold.
    #[error("SANDBOX_PROVIDER={name}: this build has no such provider; it has {built}")]
    ProviderNotBuilt {
        /// The provider.
        name: &'static str,
        /// The names this build has, with commas.
        built: String,
    },
    /// A setting this build does not support yet.
    #[error("{variable} is set and this build does not support it yet: {instead}")]
    NotInThisBuild {
        /// The variable.
        variable: &'static str,
        /// What to do.
        instead: &'static str,
    },
    /// The chosen provider cannot do what the setting asks.
    #[error("{variable} is set and the provider {provider} {why}")]
    NotWithProvider {
        /// The variable.
        variable: &'static str,
        /// The chosen provider.
        provider: &'static str,
        /// Why it cannot.
        why: &'static str,
    },
    /// The chosen provider was given a cap it cannot enforce.
    #[error("{variable} is set: {why}")]
    CannotCap {
        /// The variable.
        variable: &'static str,
        /// What the provider can enforce.
        why: &'static str,
    },
    /// The registry of callers cannot be used.
    #[error("PLIMSOLL_CLIENTS_FILE={path:?}: {fault}")]
    Clients {
        /// The path as set.
        path: String,
        /// Every fault found; never a token or its digest.
        fault: String,
    },
    /// The memory budget holds not even one run.
    #[error(
        "SANDBOX_TOTAL_MEMORY_MB={total} holds no run of {per_run} MiB{}",
        pool_words(*.pool)
    )]
    MemoryBudget {
        /// The budget in MiB.
        total: u64,
        /// One run's memory in MiB.
        per_run: u64,
        /// Sandboxes kept ready, for sessions or single runs, which come first.
        pool: u64,
    },
    /// A real provider without authentication.
    #[error(
        "the provider {provider} would run code for anyone who can connect: set PLIMSOLL_CLIENTS_FILE or PLIMSOLL_TOKEN, or PLIMSOLL_INSECURE=1 to allow it"
    )]
    NoAuthentication {
        /// The chosen provider.
        provider: &'static str,
    },
    /// One of two variables that need each other.
    #[error("{set} is set without {missing}: both or neither")]
    HalfAPair {
        /// The one that is set.
        set: &'static str,
        /// The one that is not.
        missing: &'static str,
    },
}

fn pool_words(pool: u64) -> String {
    match pool {
        0 => String::new(),
        n => format!(" beside {n} sandboxes kept ready"),
    }
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// Not text.
    #[error("not valid UTF-8")]
    NotUtf8,
    /// Not a decimal integer.
    #[error("not an integer")]
    NotAnInteger,
    /// An integer out of bounds.
    #[error("out of bounds, {least} to {most}")]
    OutOfBounds {
        /// The least allowed.
        least: i64,
        /// The most allowed.
        most: i64,
    },
    /// An integer below its bound.
    #[error("below {least}")]
    TooSmall {
        /// The least allowed.
        least: i64,
    },
    /// Not a finite number of at least 0.
    #[error("not a finite number of at least 0")]
    NotANumber,
    /// The address of an engine that is not of this host.
    #[error("not a local Unix socket, unix:///path")]
    NotLocal,
    /// Cores that no limit of an engine can be.
    #[error("not 0 and not a number of cores from 0.01 to 9223372036")]
    NotCores,
    /// Text that cannot name an image.
    #[error("not an image reference")]
    NotAnImage,
    /// A number no guest may have.
    #[error("not a number from 1 to 65532 outside the ranges that systemd gives out")]
    NotAGuest,
    /// A setting that only gVisor gives a meaning.
    #[error("only for SANDBOX_DOCKER_RUNTIME=runsc")]
    NeedsGvisor,
    /// A setting the production policy rules out.
    #[error("not with PLIMSOLL_HARDENED")]
    NotHardened,
    /// Not a duration.
    #[error("not a duration such as 90s, 30m or 1h30m")]
    NotADuration,
    /// A lifetime out of bounds.
    #[error("out of bounds, 1s to 12h")]
    NotALifetime,
    /// An idle time out of bounds.
    #[error("out of bounds, 0 or 1s to 12h")]
    NotAnIdleTime,
    /// Not an opt-in boolean.
    #[error("not a truth value; use 1 or true, 0 or false")]
    NotABoolean,
    /// Not a floor an operator can set.
    #[error("not a tier; use process, container, kernel or vm")]
    NotATier,
    /// Not `host:port`.
    #[error("not host:port with a port")]
    NoPort,
    /// A bearer token that is too short.
    #[error("shorter than 32 bytes")]
    ShortToken,
    /// A bearer token no request could carry.
    #[error("holds white space or other characters that no Authorization header can carry")]
    UnusableToken,
}
