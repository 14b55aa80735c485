//! Every variable the daemon knows, with its help.

/// Where a variable belongs in the help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Listeners, logging, authentication.
    Daemon,
    /// Provider selection and the envelope of one run.
    Envelope,
    /// Admission and rates.
    Limits,
    /// Sessions. Checked even when sessions are off.
    Sessions,
    /// Known and refused when set: this build cannot honour it yet.
    Later,
    /// Settings of the named provider, read only when it is chosen.
    Provider(&'static str),
}

/// One variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What holds when it is unset, and its bounds, in words.
    pub default: &'static str,
    /// What it is for.
    pub help: &'static str,
    /// Where it belongs.
    pub group: Group,
}

macro_rules! variables {
    ($($group:expr => { $($name:ident $default:literal $help:literal;)* })*) => {
        $($(
            #[doc = $help]
            pub const $name: Variable = Variable {
                name: stringify!($name),
                default: $default,
                help: $help,
                group: $group,
            };
        )*)*

        /// All of them, in the order of the help.
        pub const VARIABLES: &[Variable] = &[$($($name,)*)*];
    };
}

variables! {
    Group::Daemon => {
        PLIMSOLL_ADDR "default :8746, every interface"
            "RPC listen address, host:port or :port; port 0 takes a free one.";
        PLIMSOLL_LOG_FORMAT "default json" "Format of the log on standard error, json or text.";
        PLIMSOLL_CLIENTS_FILE "default none"
            "Registry of callers, each with a token of its own; wins over PLIMSOLL_TOKEN. Read once, at start; \
             plimsoll-attest clients edits it.";
        PLIMSOLL_TOKEN "default none; at least 32 bytes" "Bearer token all callers share.";
        PLIMSOLL_INSECURE "default off; exactly 1 counts"
            "Allows a provider that runs code without any authentication.";
        PLIMSOLL_TLS_CERT "default none" "PEM certificate chain; needs PLIMSOLL_TLS_KEY.";
        PLIMSOLL_TLS_KEY "default none" "PEM private key; needs PLIMSOLL_TLS_CERT.";
        PLIMSOLL_METRICS_ADDR "default 127.0.0.1:9464"
            "Listen address of /metrics, host:port, or off for none.";
        PLIMSOLL_GUARD_ADDR "default none"
            "Egress guard listen address; only for a provider that serves a guard.";
        PLIMSOLL_HARDENED "default off"
            "Production policy (1 or true): the daemon starts only when every rule of it is met.";
        PLIMSOLL_EMBEDDED "default off; exactly 1 counts"
            "Stops when standard input ends; set by the run command for its own daemon.";
    }
    Group::Envelope => {
        SANDBOX_PROVIDER "default none: every run is refused" "The provider that runs code.";
        SANDBOX_MIN_ISOLATION "default none" "Weakest tier the daemon may start with: process, container, kernel or vm.";
        SANDBOX_MEMORY_MB "default 0, the provider's" "Memory of one run in MiB.";
        SANDBOX_CPUS "default 0, the provider's; docker at least 0.01" "CPU cores of one run.";
        SANDBOX_PIDS "default 0, the provider's" "Processes of one run.";
        SANDBOX_DISK_MB "default 0, the provider's" "Writable storage of one run in MiB.";
        SANDBOX_TOTAL_MEMORY_MB "default 0, no budget"
            "Memory of this host for all runs in MiB; lowers how many run at once.";
        SANDBOX_REQUIRE_PINNED_IMAGES "default off"
            "Refuses images not named by digest (1 or true).";
        SANDBOX_GUEST_UID "default 61000; docker only" "User and group ID of every guest.";
    }
    Group::Limits => {
        SANDBOX_MAX_CONCURRENT "default 8, 1 to 1024" "Runs in flight, whole daemon.";
        SANDBOX_PER_KEY_CONCURRENT "default half of the above, at least 1"
            "Runs in flight for each caller; 0 is no cap.";
        SANDBOX_RATE_PER_MIN "default 30" "Sustained starts a minute for each caller; 0 is no limit.";
        SANDBOX_RATE_BURST "default the rate" "Starts a caller may make at once; 0 is the rate.";
        SANDBOX_PAID_SECONDS_PER_DAY "default 0, none"
            "Seconds a UTC day for all callers on a provider billed by the second; refused with any other.";
    }
    Group::Sessions => {
        SANDBOX_MAX_SESSIONS "default 0, sessions off" "Open sessions; needs a provider that keeps them.";
        SANDBOX_MAX_SESSIONS_PER_CALLER "default 0, no cap" "Open sessions of one caller.";
        SANDBOX_MAX_SESSIONS_PER_OWNER "default 0, no cap" "Open sessions of one owner of one caller.";
        SANDBOX_SESSION_POOL "default 0" "Sandboxes kept ready for sessions, at most SANDBOX_MAX_SESSIONS; docker only.";
        SANDBOX_SESSION_LIFETIME "default 30m, 1s to 12h" "Longest life of a session.";
        SANDBOX_SESSION_IDLE "default 5m, 0 or 1s to 12h" "Idle time before a session is suspended; 0 is never.";
        SANDBOX_SESSION_DISK_MB "default 1024, 0 to 1048576" "Files a session may hold after a call in MiB; 0 is no bound.";
    }
    Group::Later => {
        PLIMSOLL_GRANTS_FILE "refused in this build" "Grant profiles.";
    }
    Group::Provider("docker") => {
        SANDBOX_DOCKER_IMAGE "default node:22-alpine" "Image of snippets.";
        SANDBOX_DOCKER_PROJECT_IMAGE "default plimsoll/sandbox:latest" "Image of projects.";
        SANDBOX_DOCKER_MODULE_IMAGE "refused in this build" "Image of the simulation worker.";
        SANDBOX_DOCKER_RUNTIME "default the engine's" "OCI runtime; runsc is gVisor.";
        SANDBOX_DOCKER_SECCOMP "default the product's own profile"
            "Seccomp profile: default, engine, unconfined, or the path of one. Not used under runsc.";
        SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS "default off; runsc only"
            "Accepts a gVisor that cannot hide the runner's descriptors from a step.";
        SANDBOX_DOCKER_FRESH_POOL "default 0, 0 to 1024"
            "Containers of each kind kept ready; each is used for one run.";
        DOCKER_HOST "default the context's, else unix:///var/run/docker.sock"
            "The engine's address; a local Unix socket.";
        DOCKER_CONTEXT "default the client's current one" "The client's context that names the engine.";
        DOCKER_CONFIG "default .docker in HOME" "The client's configuration directory.";
        HOME "" "Where the client's configuration directory lies.";
        DOCKER_DEFAULT_PLATFORM "default the engine's own" "Platform every image is run for.";
    }
    Group::Provider("e2b") => {
        E2B_API_KEY "" "Credential.";
        E2B_TEMPLATE "" "Template.";
        E2B_GUARD_URL "" "Public URL of the egress guard; turns grants on.";
        E2B_SESSION_GRANTS "" "Grants in sessions: session or call.";
    }
    Group::Provider("dockercloud") => {
        DOCKER_SBX_TOKEN "" "Account token.";
        DOCKER_SBX_USERNAME "" "Account name.";
        SANDBOX_DOCKERCLOUD_AUTH_URL "" "Token exchange.";
        SANDBOX_DOCKERCLOUD_API "" "connect or rest.";
        SANDBOX_DOCKERCLOUD_API_URL "" "Management endpoint.";
        SANDBOX_DOCKERCLOUD_IMAGE "" "Image each sandbox boots.";
        SANDBOX_DOCKERCLOUD_STORE_IMAGE "" "Stored image instead, with its digest.";
        SANDBOX_DOCKERCLOUD_GUARD_URL "" "Public URL of the egress guard; turns grants on.";
        SANDBOX_DOCKERCLOUD_POLICY_URL "" "Policy endpoint.";
    }
    Group::Provider("openshell") => {
        SANDBOX_OPENSHELL_GATEWAY_URL "" "Gateway.";
        SANDBOX_OPENSHELL_CA_FILE "" "CA of the gateway.";
        SANDBOX_OPENSHELL_CERT_FILE "" "Client certificate.";
        SANDBOX_OPENSHELL_KEY_FILE "" "Client key.";
        SANDBOX_OPENSHELL_IMAGE "" "Image each sandbox boots.";
    }
    Group::Provider("agentsandbox") => {
        SANDBOX_AGENTSANDBOX_NAMESPACE "" "Namespace.";
        SANDBOX_AGENTSANDBOX_POOL "" "Warm pool.";
        SANDBOX_AGENTSANDBOX_TOKEN_FILE "" "Token of the pods' daemon.";
        SANDBOX_AGENTSANDBOX_TOKEN_FLAG "" "Flag the token is given by.";
        SANDBOX_AGENTSANDBOX_KUBECONFIG "" "Cluster configuration.";
        SANDBOX_AGENTSANDBOX_CONTEXT "" "Context of the configuration.";
        SANDBOX_AGENTSANDBOX_GRPC_PORT "" "Port of the pods' daemon.";
        SANDBOX_AGENTSANDBOX_MAX_CLAIMS "" "Claims at once.";
        SANDBOX_AGENTSANDBOX_CLAIM_WAIT_MS "" "Longest wait for a claim.";
    }
}
