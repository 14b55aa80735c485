//! Steps 5 to 8: the commit, its tree, and its files.

use std::collections::{BTreeMap, HashMap, HashSet};

use plimsoll_record::Digest;

use super::{Check, Outcomes, Refused, base::is_reviewers};
use crate::{
    collect::{self, holds, shown},
    config::{self, Config},
    git::{
        Entry, GitError, Oid, blob, merge,
        tree::{self, Mode},
    },
    statement::{Receipt, receipt::TestedKind},
};

impl Check<'_> {
    /// Step 5.
    pub(super) fn commit(&mut self) -> Outcomes {
        let receipt = self.predicate()?.clone();
        let Some(place) = &self.options.place else {
            let unbound = self.options.head.is_none() && self.options.allow_unbound;
            self.report
                .sources
                .push("revision: not tied to a revision (--no-git)".to_owned());
            return (!unbound).then(|| Err(Refused::new("git_commit", "not tied to a revision")));
        };
        let stated = &receipt.pull_request.head_sha;
        let (expected, source) = match &self.options.head {
            Some(head) => (head.clone(), "given with --head"),
            None => match place.pull_request_heads(receipt.pull_request.number) {
                Err(error) => return Some(Err(Refused::git("git_commit", &error))),
                Ok(heads) => match heads.as_slice() {
                    [one] => (one.clone(), "the clone's name for the pull request's head"),
                    [] => {
                        return Some(Err(Refused::new(
                            "git_commit",
                            "the clone has no name for the pull request's head; give --head",
                        )));
                    }
                    _ => {
                        return Some(Err(Refused::new(
                            "git_commit",
                            "the clone has two names for the pull request's head; give --head",
                        )));
                    }
                },
            },
        };
        self.report.sources.push(format!("head: {source}"));
        if expected.as_str() != stated {
            return Some(Err(Refused::new(
                "git_commit",
                format!("the receipt is of head {stated}; expected is {expected}"),
            )));
        }
        Some(self.tested_commit(&expected))
    }

    fn tested_commit(&mut self, head: &Oid) -> Result<super::Said, Refused> {
        let refused = |why: String| Refused::new("git_commit", why);
        let receipt = self
            .predicate()
            .cloned()
            .ok_or_else(|| refused(String::new()))?;
        let own = match receipt.tested.kind {
            TestedKind::Head => None,
            TestedKind::Merge => match self.own_base() {
                None => None,
                Some(Ok((oid, source))) => is_reviewers(source).then_some(oid),
                Some(Err(refusal)) => return Err(refused(refusal.detail)),
            },
        };
        let store = self
            .store
            .as_mut()
            .ok_or_else(|| refused("the clone's objects cannot be read".to_owned()))?;
        let git = |error: GitError| Refused::git("git_commit", &error);
        let tested = Oid::parse(&receipt.tested.commit_sha)
            .ok_or_else(|| refused("the tested commit is no commit".to_owned()))?;
        if receipt.tested.kind == TestedKind::Head {
            if tested != *head {
                return Err(refused(format!(
                    "the tested commit {tested} is not the head {head}"
                )));
            }
            let commit = store.commit(&tested).map_err(git)?;
            self.tree = Some(commit.tree);
            return Ok(format!("head {tested}").into());
        }
        let base = Oid::parse(&receipt.pull_request.base_sha)
            .ok_or_else(|| refused("the base is no commit".to_owned()))?;
        // A merge into a commit of the author's own tests files that no branch
        // will ever hold.
        if let Some(own) = own
            && !merge::is_ancestor(store, &base, &own).unwrap_or(false)
        {
            return Err(refused(format!(
                "the merge is into {base}, which is not in the history of your base {own}; if the \
                 branch moved on, fetch it"
            )));
        }
        for oid in [&base, head] {
            store.commit(oid).map_err(git)?;
        }
        // Both: a merge commit with the right parents may hold anything.
        let made = merge::tree(store, &base, head).map_err(git)?;
        let there = store.has_commit(&tested).map_err(git)?;
        if there {
            let commit = store.commit(&tested).map_err(git)?;
            if commit.parents != [base.clone(), head.clone()] {
                return Err(refused(format!(
                    "the merge commit's parents are not the base {base} and the head {head}"
                )));
            }
            if commit.tree != made {
                return Err(refused(format!(
                    "merging {head} into {base} gives the tree {made}, not the merge commit's {}",
                    commit.tree
                )));
            }
        }
        self.tree = Some(made);
        Ok(if there {
            format!("merge {tested} of {head} into {base}, made again").into()
        } else {
            format!(
                "merge of {head} into {base}, made again; the merge commit {tested} itself is not in \
                 the clone"
            )
            .into()
        })
    }

    /// Step 6.
    pub(super) fn commit_tree(&mut self) -> Outcomes {
        let stated = self.predicate()?.tested.tree_sha.clone();
        let found = self.tree.as_ref()?;
        if found.as_str() != stated {
            return Some(Err(Refused::new(
                "git_tree",
                format!("the tree is {found}; the receipt states {stated}"),
            )));
        }
        let found = found.clone();
        let entries = tree::flat(self.store.as_mut()?, &found);
        Some(match entries {
            Ok(entries) => {
                Ok(format!("tree {found}, {} files, hashed again", entries.len()).into())
            }
            Err(error) => Err(Refused::git("git_tree", &error)),
        })
    }

    fn entries(&mut self) -> Option<Vec<Entry>> {
        let stated = self.predicate()?.tested.tree_sha.clone();
        let found = self.tree.clone().filter(|tree| tree.as_str() == stated)?;
        tree::flat(self.store.as_mut()?, &found).ok()
    }

    /// Step 7.
    pub(super) fn files_sent(&mut self) -> Outcomes {
        let entries = self.entries()?;
        let receipt = self.predicate()?;
        let by_path: HashMap<&[u8], &Entry> = entries
            .iter()
            .map(|entry| (entry.path.as_slice(), entry))
            .collect();
        let added: BTreeMap<&str, &str> = receipt
            .tested
            .added
            .iter()
            .map(|file| (file.path.as_str(), file.sha256.as_str()))
            .collect();
        let mut unsent: HashSet<&str> = added.keys().copied().collect();
        let sent = &self.run.as_ref()?.project()?.0.files;
        let refused =
            |code, why: &str, path: &str| Some(Err(Refused::new(code, format!("{path} {why}"))));
        if added.len() != receipt.tested.added.len() {
            return refused("file_unexplained", "is listed twice", "an added file");
        }
        for file in sent {
            let path = file.path.as_str();
            let content = file.content.as_bytes();
            let entry = by_path.get(path.as_bytes());
            let regular = entry.is_some_and(|e| matches!(e.mode, Mode::File | Mode::Executable));
            let name = entry.and_then(|e| blob::name(e.oid.algorithm(), content));
            let of_commit = regular && entry.map(|e| &e.oid) == name.as_ref();
            unsent.remove(path);
            match added.get(path) {
                Some(_) if of_commit => {
                    return refused("file_mismatch", "is the commit's and listed as added", path);
                }
                Some(sha256) if !Digest::of(content).is(sha256) => {
                    return refused("file_mismatch", "is not what was listed as added", path);
                }
                None if entry.is_none() => {
                    return refused(
                        "file_unexplained",
                        "is neither of the commit nor listed as added",
                        path,
                    );
                }
                None if !of_commit => {
                    return refused("file_mismatch", "is not the commit's", path);
                }
                _ => {}
            }
        }
        if let Some(path) = unsent.into_iter().min() {
            return refused(
                "file_unexplained",
                "is listed as added and was not sent",
                path,
            );
        }
        let count = sent.len() - added.len().min(sent.len());
        Some(Ok(format!(
            "{count} files of the commit, {} added",
            added.len()
        )
        .into()))
    }

    /// Step 8.
    pub(super) fn files_left_out(&mut self, config: Option<&Config>) -> Outcomes {
        let entries = self.entries()?;
        let receipt = self.predicate()?.clone();
        let run = self.run.as_ref()?;
        let added: HashSet<&str> = receipt
            .tested
            .added
            .iter()
            .map(|file| file.path.as_str())
            .collect();
        let sent: HashSet<String> = run
            .project()?
            .0
            .files
            .iter()
            .filter(|file| !added.contains(file.path.as_str()))
            .map(|file| file.path.clone())
            .collect();
        let exclude = config.and_then(|config| config::patterns(&config.exclude).ok());
        let mut listed: HashMap<(String, String), Vec<collect::Reason>> = HashMap::new();
        for file in &receipt.tested.excluded {
            let place = (file.path.clone(), file.git_blob.clone());
            listed.entry(place).or_default().push(file.reason);
        }
        let refused = |why: String| Some(Err(Refused::new("file_missing", why)));
        let mut executable = 0;
        let mut configured = 0;
        for entry in &entries {
            let path = shown(&entry.path);
            let reason = listed
                .get_mut(&(path.clone(), entry.oid.as_str().to_owned()))
                .and_then(Vec::pop);
            let was_sent = std::str::from_utf8(&entry.path).is_ok_and(|path| sent.contains(path));
            match (was_sent, reason) {
                (true, None) => executable += u64::from(entry.mode == Mode::Executable),
                (true, Some(_)) => {
                    return refused(format!("{path} was sent and is listed as left out"));
                }
                (false, None) => return refused(format!("{path} was not sent and is not listed")),
                (false, Some(reason)) => {
                    configured += u64::from(reason == collect::Reason::Configured);
                    match holds(self.store.as_mut()?, entry, reason, exclude.as_ref()) {
                        Ok(true) => {}
                        Ok(false) => {
                            return refused(format!("{path} is not {}", reason.word()));
                        }
                        Err(error) => return refused(error.to_string()),
                    }
                }
            }
        }
        if let Some((path, _)) = listed
            .iter()
            .find(|(_, left)| !left.is_empty())
            .map(|(k, _)| k)
        {
            return refused(format!(
                "{path} is listed as left out and is not in the commit"
            ));
        }
        if executable != receipt.tested.executable {
            return Some(Err(Refused::new(
                "file_mismatch",
                format!(
                    "{executable} files sent are executable; stated are {}",
                    receipt.tested.executable
                ),
            )));
        }
        if let Some(refusal) = self.tests_changed(config, &receipt) {
            return Some(Err(refusal));
        }
        if configured > 0 && exclude.is_none() {
            self.report.warnings.push(format!(
                "{configured} files were left out by flags of the workflow, which are in no commit to \
                 compare with"
            ));
        }
        Some(Ok(format!(
            "{} left out, each for a reason that holds",
            receipt.tested.excluded.len()
        )
        .into()))
    }

    /// Whether the test files changed are those stated, against the base that
    /// is stated; step 12 compares with the reviewer's own.
    fn tests_changed(&mut self, config: Option<&Config>, receipt: &Receipt) -> Option<Refused> {
        let base = Oid::parse(&receipt.pull_request.base_sha)?;
        let tree = self.tree.clone()?;
        let store = self.store.as_mut()?;
        let Ok(base) = store.commit(&base) else {
            self.report.warnings.push(
                "the base commit is not in the clone: changed tests were not compared".to_owned(),
            );
            return None;
        };
        let patterns = config.map_or_else(
            || config::TEST_PATHS.map(str::to_owned).to_vec(),
            Config::test_paths,
        );
        let patterns = config::patterns(&patterns).ok()?;
        match collect::tests_changed(store, &base.tree, &tree, &patterns) {
            Ok(changed) if changed == receipt.tests_changed => None,
            Ok(_) => Some(Refused::new(
                "file_mismatch",
                "tests_changed does not list the test files that differ from the base",
            )),
            Err(error) => Some(Refused::git("file_mismatch", &error)),
        }
    }
}
