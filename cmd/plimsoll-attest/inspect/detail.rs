//! The content of one call: code, files and output, each in a block.

use plimsoll_console::escape;
use plimsoll_wire::proto::{
    ProjectFile, run_request::Payload as Asked, run_response::Result as RunResult,
};

use super::seen::Call;

/// Most bytes of one block, unless all is asked for.
const MOST_SHOWN: usize = 64 << 10;

/// The blocks of a call. Each begins with its heading and ends in a newline.
pub fn blocks(call: &Call, full: bool) -> Vec<String> {
    let mut blocks = Blocks {
        most: if full { usize::MAX } else { MOST_SHOWN },
        shown: Vec::new(),
    };
    match call.request.as_ref().and_then(|r| r.payload.as_ref()) {
        Some(Asked::Javascript(run)) => blocks.add("code", run.code.as_bytes()),
        Some(Asked::Cell(run)) => {
            blocks.add("code", run.code.as_bytes());
            blocks.files(&run.files);
        }
        Some(Asked::Project(run)) => {
            blocks.files(&run.files);
            for (n, step) in run.steps.iter().enumerate() {
                blocks.add(&format!("step {}", n + 1), step.as_bytes());
            }
        }
        Some(Asked::Module(_)) | None => {}
    }
    match call.response.as_ref().and_then(|r| r.result.as_ref()) {
        Some(RunResult::Javascript(r)) => blocks.streams("", &r.stdout, &r.stderr),
        Some(RunResult::Cell(r)) => blocks.streams("", &r.stdout, &r.stderr),
        Some(RunResult::Project(r)) => {
            for (n, step) in r.steps.iter().enumerate() {
                blocks.streams(&format!("step {} ", n + 1), &step.stdout, &step.stderr);
            }
            for artifact in &r.artifacts {
                let heading = format!("artifact {}", escape::line_cut(&artifact.path, 84));
                blocks.add(&heading, &artifact.content);
            }
        }
        Some(RunResult::Module(r)) => blocks.streams("", &r.stdout, &r.stderr),
        None => {}
    }
    blocks.shown
}

struct Blocks {
    most: usize,
    shown: Vec<String>,
}

impl Blocks {
    /// Adds a block; nothing for no content. `heading` is escaped already.
    fn add(&mut self, heading: &str, content: &[u8]) {
        if !content.is_empty() {
            let block = escape::block(content, self.most);
            self.shown.push(format!("{heading}:\n{block}"));
        }
    }

    fn files(&mut self, files: &[ProjectFile]) {
        for file in files {
            let heading = format!("file {}", escape::line_cut(&file.path, 84));
            self.add(&heading, file.content.as_bytes());
        }
    }

    fn streams(&mut self, of: &str, stdout: &[u8], stderr: &[u8]) {
        self.add(&format!("{of}stdout"), stdout);
        self.add(&format!("{of}stderr"), stderr);
    }
}
