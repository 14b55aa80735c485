//! What is tested: the commit, its files, and what is run over them.

use std::path::Path;

use plimsoll_console::{
    Class, Console, Failure,
    files::{Dash, Inputs},
};
use plimsoll_receipt::{
    collect::{self, CollectError, Collected, TooMuch},
    config::{self, Config},
    event::{self, Binding, EventError},
    git::{GitError, Kind, Oid, Place, Store, merge, store::Content, tree},
    make::{Files, config_from},
    report::Source,
    statement::receipt::{
        Added, ConfigFrom, ConfigSource, PullRequest, Repository, TestedKind, Workflow,
    },
};
use plimsoll_wire::{
    PROTOCOL,
    proto::{ProjectRun, RunRequest, run_request::Payload},
    validate,
};

use super::{
    added::{self, AddedFile, Named},
    flags::Form,
    usage,
};

/// Everything known before the run.
pub struct Subject {
    pub binding: Binding,
    pub commit: Oid,
    pub tree: Oid,
    pub files: Files,
    pub added: Vec<Added>,
    pub config: Config,
    pub config_from: ConfigFrom,
    pub tests_changed: Vec<String>,
    pub workflow: Workflow,
    pub request: RunRequest,
}

impl Subject {
    /// Reads event, commit, configuration and files. Nothing of them is run.
    ///
    /// # Errors
    /// Class `usage`, `io`, `config`, `git_commit` or `request`.
    pub fn read(console: &Console, form: &Form) -> Result<Subject, Failure> {
        let binding = binding(console, form)?;
        let lookup = |name: &str| std::env::var(name).ok();
        let mut workflow =
            event::workflow(&binding.repository.url, lookup).map_err(|error| of_event(&error))?;
        workflow.event.clone_from(&form.event_name);
        let place = Place::find(&form.repo).map_err(|error| {
            Failure::new(
                Class::Io,
                format!("{error}; nothing was run"),
                "Name the checkout of the pull request with --repo.",
            )
            .file(&form.repo)
        })?;
        let git = |error: &GitError| of_git(&form.repo, error);
        let head = oid(&binding.pull_request.head_sha)?;
        let base = oid(&binding.pull_request.base_sha)?;
        let commit = match form.tested {
            TestedKind::Head => head.clone(),
            TestedKind::Merge => merge_commit(form)?,
        };
        let mut store = Store::open(&place, head.algorithm()).map_err(|error| git(&error))?;
        let tested = store.commit(&commit).map_err(|error| git(&error))?;
        let base_tree = store.commit(&base).map_err(|error| git(&error))?.tree;
        if form.tested == TestedKind::Merge {
            let made = merge::tree(&store, &base, &head).map_err(|error| git(&error))?;
            if tested.parents != [base.clone(), head.clone()] || made != tested.tree {
                return Err(Failure::new(
                    Class::GitCommit,
                    format!("the merge commit {commit} is not the merge of {head} into {base}"),
                    "The base moved since the event, or the merge commit holds something else. Run \
                     the workflow again.",
                )
                .file(&form.repo));
            }
        }
        let (config, config_from) = configuration(form, &mut store, &base_tree, &tested.tree)?;
        let exclude = patterns(&config.exclude)?;
        let collected =
            collect::collect(&mut store, &tested.tree, &exclude).map_err(|error| match error {
                CollectError::Git(error) => git(&error),
                CollectError::TooMuch(much) => too_much(&much),
            })?;
        let named = match config_from.source {
            ConfigSource::Workflow => Named::ByFlag,
            ConfigSource::Base | ConfigSource::Tested => Named::ByConfiguration,
        };
        let added = added::read(&config.add, named, &form.repo, &collected)?;
        let tests = patterns(&config.test_paths())?;
        let tests_changed = collect::tests_changed(&mut store, &base_tree, &tested.tree, &tests)
            .map_err(|error| git(&error))?;
        if !workflow.path.is_empty() {
            let found = tree::find(&mut store, &tested.tree, &workflow.path);
            let found = found.map_err(|error| git(&error))?;
            workflow.git_blob = found.map_or_else(String::new, |oid| oid.as_str().to_owned());
        }
        let request = request(form, &config, &collected, &added)?;
        Ok(Subject {
            binding,
            commit,
            tree: tested.tree,
            files: Files::of(&collected),
            added: added
                .iter()
                .map(|file| Added {
                    path: file.path.clone(),
                    sha256: plimsoll_record::Digest::of(file.content.as_bytes()).to_hex(),
                })
                .collect(),
            config,
            config_from,
            tests_changed,
            workflow,
            request,
        })
    }
}

fn binding(console: &Console, form: &Form) -> Result<Binding, Failure> {
    if let Some(file) = &form.event {
        let bytes = Inputs::new(console).read(file, Dash::Refused, event::MAX_BYTES)?;
        let server = std::env::var("GITHUB_SERVER_URL").unwrap_or_default();
        let server = if server.is_empty() {
            "https://github.com"
        } else {
            &server
        };
        return event::read(&bytes, server).map_err(|error| of_event(&error).file(file));
    }
    let mut values = form
        .binding
        .iter()
        .map(|value| value.clone().unwrap_or_default());
    let mut next = || values.next().unwrap_or_default();
    let (url, number, head_sha, base_sha, base_ref, head_repository) =
        (next(), next(), next(), next(), next(), next());
    let binding = Binding {
        pull_request: PullRequest {
            number: number.parse().map_err(|_| {
                usage(
                    "--pr is not a number",
                    "Give the pull request's number in decimal.",
                )
            })?,
            head_repository: if head_repository.is_empty() {
                url.clone()
            } else {
                head_repository
            },
            head_sha,
            base_ref,
            base_sha,
        },
        repository: Repository { url },
    };
    binding.check().map_err(|error| {
        usage(
            &error.to_string(),
            "URLs are https without user, query or fragment; commits are 40 or 64 lowercase hex digits.",
        )
    })?;
    Ok(binding)
}

fn of_event(error: &EventError) -> Failure {
    Failure::new(
        Class::Config,
        format!("{error}; nothing was run"),
        "Give the event file of a pull request, or all facts by flags.",
    )
}

fn oid(text: &str) -> Result<Oid, Failure> {
    Oid::parse(text).ok_or_else(|| of_event(&EventError::Value("a commit")))
}

fn merge_commit(form: &Form) -> Result<Oid, Failure> {
    let stated = form.commit.as_deref().and_then(Oid::parse);
    stated.ok_or_else(|| {
        usage(
            "--tested merge needs the merge commit",
            "Give it in full with --merge-commit; on GitHub Actions GITHUB_SHA is it.",
        )
    })
}

fn of_git(repo: &Path, error: &GitError) -> Failure {
    match error {
        GitError::Missing(..) => Failure::new(
            Class::GitCommit,
            format!("{error}; nothing was run"),
            "Check out the whole history (fetch-depth: 0), so that head and base are both there.",
        ),
        GitError::Io(..) | GitError::NoRepository | GitError::Answer => Failure::new(
            Class::Io,
            format!("{error}; nothing was run"),
            "Install git 2.38 or later, and name a clone with --repo.",
        ),
        _ => Failure::new(
            Class::GitTree,
            format!("{error}; nothing was run"),
            "The repository's objects are damaged, or made to be. Clone it again.",
        ),
    }
    .file(repo)
}

/// The base's file, the tested commit's when asked for, or the flags.
fn configuration(
    form: &Form,
    store: &mut Store,
    base: &Oid,
    tested: &Oid,
) -> Result<(Config, ConfigFrom), Failure> {
    let tree = if form.config_from == ConfigSource::Tested {
        tested
    } else {
        base
    };
    let git = |error: &GitError| of_git(&form.repo, error);
    let blob = tree::find(store, tree, config::PATH).map_err(|error| git(&error))?;
    let from = form.config_from;
    match (blob, &form.flags) {
        (Some(_), Some(_)) => Err(usage(
            &format!(
                "{} of the {} commit and flags exclude each other",
                config::PATH,
                from.word()
            ),
            "Leave out --step, --report, --add and --exclude: the file is reviewed like code.",
        )),
        (Some(blob), None) => {
            let refused = |why: &dyn std::fmt::Display| {
                Failure::new(
                    Class::Config,
                    format!(
                        "{} of the {} commit: {why}; nothing was run",
                        config::PATH,
                        from.word()
                    ),
                    "Correct the file there; pr-receipt init writes one to begin with.",
                )
            };
            let bytes = match store.read(Kind::Blob, &blob, config::MAX_BYTES) {
                Ok(Content::Whole(bytes)) => bytes,
                Ok(Content::Large(_)) => return Err(refused(&"it is too large")),
                Err(error) => return Err(git(&error)),
            };
            let config = Config::read(&bytes).map_err(|error| refused(&error))?;
            Ok((config, config_from(from, Some(&blob))))
        }
        (None, Some(flags)) => Ok((flags.clone(), config_from(ConfigSource::Workflow, None))),
        (None, None) => Err(usage(
            &format!(
                "the {} commit has no {}, and no --step is given",
                from.word(),
                config::PATH
            ),
            "Give the commands with --step, or merge a configuration into the base first.",
        )),
    }
}

fn patterns(list: &[String]) -> Result<globset::GlobSet, Failure> {
    config::patterns(list)
        .map_err(|error| usage(&error.to_string(), "Correct the patterns; ** crosses /."))
}

fn too_much(much: &TooMuch) -> Failure {
    let largest: Vec<String> = much
        .largest
        .iter()
        .map(|(path, bytes)| format!("{path} ({bytes})"))
        .collect();
    Failure::new(
        Class::Request,
        format!("{much}; nothing was run"),
        format!(
            "Leave files out with exclude, in {} or as a flag. The largest: {}.",
            config::PATH,
            largest.join(", ")
        ),
    )
}

fn request(
    form: &Form,
    config: &Config,
    collected: &Collected,
    added: &[AddedFile],
) -> Result<RunRequest, Failure> {
    let files: Vec<(String, String)> = collected
        .files
        .iter()
        .map(|file| (file.path.clone(), file.content.clone()))
        .chain(
            added
                .iter()
                .map(|file| (file.path.clone(), file.content.clone())),
        )
        .collect();
    let sizes = files
        .iter()
        .map(|(path, content)| (path.clone(), content.len() as u64));
    collect::within(sizes.collect()).map_err(|much| too_much(&much))?;
    let mut artifacts: Vec<String> = Vec::new();
    for spec in &config.reports {
        if let Source::Artifact(path) = &spec.source
            && !artifacts.contains(path)
        {
            artifacts.push(path.clone());
        }
    }
    let request = RunRequest {
        protocol: PROTOCOL,
        minimum_isolation: form.floor.map_or("", plimsoll_wire::Tier::name).to_owned(),
        timeout_ms: i32::try_from(form.timeout.as_millis()).unwrap_or(i32::MAX),
        software_rule: form.software.to_message().into(),
        payload: Some(Payload::from(ProjectRun {
            files: collect::wire_files(files),
            steps: config.steps.clone(),
            artifacts,
            ..ProjectRun::default()
        })),
        ..RunRequest::default()
    };
    validate::single_run(&request).map_err(|refusal| {
        Failure::new(
            Class::Request,
            format!("{refusal}; nothing was run"),
            "Correct the commit's files or the configuration.",
        )
        .member(&refusal.member)
    })?;
    Ok(request)
}
