//! Honest answers, and a disk that fails.
#![allow(dead_code)]

use std::{
    cell::Cell,
    io::{self, BufRead},
    path::Path,
};

use plimsoll_attestation::bundle::disk::{BundleFile, Disk, Facts, OsDisk};
use plimsoll_record::{make, request_digest};
use plimsoll_wire::{
    PROTOCOL, Rule,
    proto::{
        JavaScriptRun, RunRequest, RunResponse, run_request::Payload,
        run_response::Result as RunResult,
    },
};

use super::fake::{Reply, Seen};

pub fn snippet(code: &str) -> RunRequest {
    RunRequest {
        protocol: PROTOCOL,
        payload: Some(Payload::Javascript(Box::new(JavaScriptRun {
            code: code.into(),
            ..Default::default()
        }))),
        ..Default::default()
    }
}

/// An honest answer with an empty snippet's result.
pub fn answer(request: &RunRequest) -> RunResponse {
    answer_with(request, RunResult::Javascript(Box::default()))
}

pub fn answer_with(request: &RunRequest, result: RunResult) -> RunResponse {
    let mut response = RunResponse {
        sandbox: "docker".into(),
        isolation: "kernel".into(),
        result: Some(result),
        ..Default::default()
    };
    let rule = Rule::parse(request.software_rule.as_option()).unwrap();
    let facts = make::Facts {
        request: request_digest(request),
        rule: &rule,
        policy: "",
        started_unix_ms: 1,
        ended_unix_ms: 2,
        chain: None,
    };
    response.record = Some(make::answered(&facts, &response)).into();
    response
}

pub fn honest(seen: &Seen) -> Reply {
    if seen.procedure() == "readyz" {
        return Reply::bytes(b"ready\n".to_vec());
    }
    Reply::proto(&answer(&seen.message()))
}

/// A disk on which the n-th write to one file stops half way. A name that
/// begins with a dot stands for every file whose name holds it.
pub struct FailingDisk {
    name: &'static str,
    failing: usize,
    writes: std::rc::Rc<Cell<usize>>,
}

impl FailingDisk {
    pub fn new(name: &'static str, failing: usize) -> Self {
        FailingDisk {
            name,
            failing,
            writes: Default::default(),
        }
    }
}

pub struct FailingFile {
    inner: <OsDisk as Disk>::File,
    failing: Option<(usize, std::rc::Rc<Cell<usize>>)>,
}

impl FailingDisk {
    fn file(&self, path: &Path, inner: <OsDisk as Disk>::File) -> FailingFile {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let ours = name == self.name || (self.name.starts_with('.') && name.contains(self.name));
        FailingFile {
            inner,
            failing: ours.then(|| (self.failing, self.writes.clone())),
        }
    }
}

impl Disk for FailingDisk {
    type File = FailingFile;

    fn open_to_read(&self, path: &Path) -> io::Result<Option<FailingFile>> {
        Ok(OsDisk.open_to_read(path)?.map(|f| self.file(path, f)))
    }

    fn open_to_append(&self, path: &Path) -> io::Result<(FailingFile, bool)> {
        let (file, created) = OsDisk.open_to_append(path)?;
        Ok((self.file(path, file), created))
    }

    fn create_new(&self, path: &Path) -> io::Result<FailingFile> {
        Ok(self.file(path, OsDisk.create_new(path)?))
    }

    fn facts(&self, path: &Path) -> io::Result<Option<Facts>> {
        OsDisk.facts(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        OsDisk.sync_directory_of(path)
    }
}

impl BundleFile for FailingFile {
    fn facts(&self) -> io::Result<Facts> {
        self.inner.facts()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }

    fn read(&mut self) -> io::Result<impl BufRead> {
        self.inner.read()
    }

    fn append(&mut self, length: u64, bytes: &[u8]) -> io::Result<()> {
        if let Some((failing, writes)) = &self.failing {
            let number = writes.get();
            writes.set(number + 1);
            if number == *failing {
                self.inner.append(length, &bytes[..bytes.len() / 2])?;
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
        }
        self.inner.append(length, bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.inner.truncate(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.inner.sync()
    }
}
