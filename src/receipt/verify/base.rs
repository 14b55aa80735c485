//! Steps 10 and 12: what was run, and whether the base agrees.

use super::{Check, Outcomes, Refused, Said, binding::specs};
use crate::{
    collect,
    config::{self, Config},
    git::{Entry, GitError, Kind, Oid, Store, merge, store::Content, tree},
    statement::receipt::ConfigSource,
};

/// Directories whose files decide what a CI job does.
const CI: [&str; 3] = [".github/workflows/", ".github/actions/", ".plimsoll/"];

impl Check<'_> {
    /// The configuration the receipt names, from git objects. `None` for flags,
    /// and when there is no clone.
    pub(super) fn config(&mut self) -> Option<Result<Config, Refused>> {
        let receipt = self.predicate()?.clone();
        let store = self.store.as_mut()?;
        let refused = |why: String| Refused::new("config_mismatch", why);
        let of = match receipt.config.source {
            ConfigSource::Workflow => return None,
            ConfigSource::Base => &receipt.pull_request.base_sha,
            ConfigSource::Tested => &receipt.tested.commit_sha,
        };
        let tree = match receipt.config.source {
            ConfigSource::Tested => self.tree.clone(),
            _ => match Oid::parse(of).map(|oid| store.commit(&oid)) {
                Some(Ok(commit)) => Some(commit.tree),
                Some(Err(error)) => return Some(Err(Refused::git("config_mismatch", &error))),
                None => None,
            },
        };
        let found = match tree.map(|tree| tree::find(store, &tree, config::PATH)) {
            Some(Ok(found)) => found,
            Some(Err(error)) => return Some(Err(Refused::git("config_mismatch", &error))),
            None => None,
        };
        let Some(blob) = found.filter(|blob| blob.as_str() == receipt.config.git_blob) else {
            return Some(Err(refused(format!(
                "{} of the {} commit is not the blob stated",
                config::PATH,
                receipt.config.source.word()
            ))));
        };
        Some(match store.read(Kind::Blob, &blob, config::MAX_BYTES) {
            Ok(Content::Whole(bytes)) => Config::read(&bytes).map_err(|e| refused(e.to_string())),
            Ok(Content::Large(_)) => Err(refused("the configuration is too large".to_owned())),
            Err(error) => Err(Refused::git("config_mismatch", &error)),
        })
    }

    /// Step 10.
    pub(super) fn config_holds(&mut self, config: Option<Result<Config, Refused>>) -> Outcomes {
        let receipt = self.predicate()?.clone();
        let asked = self.run.as_ref()?.project()?.0.clone();
        let refused = |why: &str| Some(Err(Refused::new("config_mismatch", why)));
        if receipt.config.source == ConfigSource::Workflow {
            if !receipt.config.git_blob.is_empty() {
                return refused("flags of a workflow have no blob");
            }
            let base = Oid::parse(&receipt.pull_request.base_sha)?;
            let store = self.store.as_mut()?;
            let Ok(commit) = store.commit(&base) else {
                return Some(Ok(
                    "from flags of the workflow; the base commit is not in the clone".into(),
                ));
            };
            return match tree::find(store, &commit.tree, config::PATH) {
                Ok(None) => Some(Ok(
                    "from flags of the workflow; the base has no configuration".into(),
                )),
                Ok(Some(_)) => refused(
                    "the base commit has a configuration, and flags of the workflow were used",
                ),
                Err(error) => Some(Err(Refused::git("config_mismatch", &error))),
            };
        }
        let config = match config? {
            Ok(config) => config,
            Err(refusal) => return Some(Err(refusal)),
        };
        if config.steps != asked.steps {
            return refused("the steps are not those of the configuration");
        }
        if specs(&receipt).ok()? != config.reports {
            return refused("the reports are not those of the configuration");
        }
        let below = |path: &str| {
            config
                .add
                .iter()
                .filter_map(|add| config::added(add))
                .any(|(_, to)| {
                    path.strip_prefix(to)
                        .is_some_and(|rest| rest.starts_with('/'))
                })
        };
        if let Some(file) = receipt.tested.added.iter().find(|file| !below(&file.path)) {
            return Some(Err(Refused::new(
                "config_mismatch",
                format!(
                    "{} was added and the configuration adds no such directory",
                    file.path
                ),
            )));
        }
        let detail = format!(
            "{} of the {} commit",
            config::PATH,
            receipt.config.source.word()
        );
        if receipt.config.source == ConfigSource::Tested {
            self.report.warnings.push(
                "the commands were read from the tested commit, which the pull request controls"
                    .to_owned(),
            );
        }
        Some(Ok(detail.into()))
    }

    /// The base to compare with, and in whose words: the reviewer's, the
    /// clone's, or the receipt's.
    pub(super) fn own_base(&self) -> Option<Result<(Oid, &'static str), Refused>> {
        let receipt = self.predicate()?.clone();
        let place = self.options.place.as_ref()?;
        let missing = |why: String| Some(Err(Refused::new("workflow_changed", why)));
        if let Some(word) = &self.options.base {
            return match place.resolve(word) {
                Ok(Some(oid)) => Some(Ok((oid, "given with --base-ref"))),
                Ok(None) => missing(format!("the clone has no {word}")),
                Err(error) => missing(error.to_string()),
            };
        }
        // The branch is the receipt's word; that it is the clone's own branch
        // of the remote, and where it stands, is the clone's.
        let name = format!("refs/remotes/origin/{}", receipt.pull_request.base_ref);
        match place.read_ref(&name) {
            Ok(Some(oid)) => Some(Ok((
                oid,
                "the clone's remote branch, which the receipt names as its base",
            ))),
            Ok(None) => Oid::parse(&receipt.pull_request.base_sha)
                .map(|oid| Ok((oid, "the receipt's own word; give --base-ref to name yours"))),
            Err(error) => missing(error.to_string()),
        }
    }

    /// Step 12.
    pub(super) fn workflow(&mut self) -> Outcomes {
        let receipt = self.predicate()?.clone();
        let require = self.options.require_workflow_unchanged;
        let (base, source) = match self.own_base()? {
            Ok(found) => found,
            Err(refusal) => return Some(Err(refusal)),
        };
        self.report.sources.push(format!("base: {base}, {source}"));
        let own = is_reviewers(source);
        let expected = self.options.workflow.clone();
        let tested = self.tree.clone()?;
        let store = self.store.as_mut()?;
        let compared = match compare(store, &base, &tested, &receipt) {
            Ok(compared) => compared,
            Err(error) if require => return Some(Err(Refused::git("workflow_changed", &error))),
            Err(error) => {
                return Some(Ok(Said {
                    detail: format!("not compared with the base: {error}"),
                    warning: Some("workflow_changed"),
                }));
            }
        };
        if compared.stated_blob != receipt.workflow.git_blob {
            return Some(Err(Refused::new(
                "binding_mismatch",
                "the workflow's blob is not the tested commit's",
            )));
        }
        if let Some(expected) = expected.filter(|path| *path != receipt.workflow.path) {
            return Some(Err(Refused::new(
                "workflow_changed",
                format!(
                    "the receipt names the workflow {}; expected is {expected}",
                    receipt.workflow.path
                ),
            )));
        }
        if own {
            self.tests_against(&base, &receipt.pull_request.base_sha);
        }
        let mut changed = compared.changed;
        if compared.config_differs {
            changed.push(format!("{} (the one used)", config::PATH));
        }
        if require && !own {
            return Some(Err(Refused::new(
                "workflow_changed",
                "there is no base but the receipt's own word; give --base-ref",
            )));
        }
        if changed.is_empty() {
            return Some(Ok(format!(
                "workflow and configuration are the same at {base}"
            )
            .into()));
        }
        let total = changed.len();
        changed.truncate(10);
        let detail = format!(
            "the pull request differs from {base} in {}{}",
            changed.join(", "),
            if total > 10 {
                format!(" and {} more", total - 10)
            } else {
                String::new()
            }
        );
        Some(if require {
            Err(Refused::new("workflow_changed", detail))
        } else {
            Ok(Said {
                detail,
                warning: Some("workflow_changed"),
            })
        })
    }

    /// Test files changed against the reviewer's base, which the receipt's may
    /// not be.
    fn tests_against(&mut self, own: &Oid, stated: &str) {
        let patterns = config::patterns(&config::TEST_PATHS);
        let (Some(store), Some(tested), Ok(patterns)) =
            (self.store.as_mut(), self.tree.as_ref(), patterns)
        else {
            return;
        };
        if let Some(stated) = Oid::parse(stated)
            && !merge::is_ancestor(store, &stated, own).unwrap_or(false)
        {
            self.report.warnings.push(format!(
                "the base the receipt states, {stated}, is not in the history of {own}"
            ));
        }
        let base = store.commit(own).map(|commit| commit.tree);
        let changed = base.and_then(|base| collect::tests_changed(store, &base, tested, &patterns));
        match changed {
            Ok(changed) if !changed.is_empty() => self.report.warnings.push(format!(
                "test files that differ from {own}: {}",
                changed.join(", ")
            )),
            Ok(_) => {}
            Err(error) => self
                .report
                .warnings
                .push(format!("test files were not compared: {error}")),
        }
    }
}

/// Whether a base is known from elsewhere than the receipt.
pub(super) fn is_reviewers(source: &str) -> bool {
    !source.starts_with("the receipt's")
}

struct Compared {
    /// The workflow file's blob in the tested tree; empty when absent.
    stated_blob: String,
    /// Files of CI that differ between base and tested tree.
    changed: Vec<String>,
    /// Whether the configuration used is not the base's.
    config_differs: bool,
}

fn compare(
    store: &mut Store,
    base: &Oid,
    tested: &Oid,
    receipt: &crate::statement::Receipt,
) -> Result<Compared, GitError> {
    let base = store.commit(base)?.tree;
    let before = tree::flat(store, &base)?;
    let after = tree::flat(store, tested)?;
    let path = receipt.workflow.path.as_str();
    let of_ci = |entry: &&Entry| {
        let named = entry.path == path.as_bytes() || entry.path == config::PATH.as_bytes();
        named
            || CI
                .iter()
                .any(|prefix| entry.path.starts_with(prefix.as_bytes()))
    };
    let find = |entries: &[Entry], path: &[u8]| {
        let place = entries.binary_search_by(|entry| entry.path.as_slice().cmp(path));
        place
            .ok()
            .and_then(|n| entries.get(n))
            .map(|entry| (entry.mode, entry.oid.clone()))
    };
    let mut changed: Vec<String> = Vec::new();
    for entry in after.iter().filter(of_ci) {
        if find(&before, &entry.path) != Some((entry.mode, entry.oid.clone())) {
            changed.push(collect::shown(&entry.path));
        }
    }
    for entry in before.iter().filter(of_ci) {
        if find(&after, &entry.path).is_none() {
            changed.push(collect::shown(&entry.path));
        }
    }
    changed.sort();
    let blob = |entries: &[Entry], path: &str| {
        find(entries, path.as_bytes()).map_or_else(String::new, |(_, oid)| oid.as_str().to_owned())
    };
    Ok(Compared {
        stated_blob: if path.is_empty() {
            String::new()
        } else {
            blob(&after, path)
        },
        config_differs: blob(&before, config::PATH) != receipt.config.git_blob,
        changed,
    })
}
