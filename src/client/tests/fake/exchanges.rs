//! The example exchanges, as the client sees them.
#![allow(dead_code)]

use std::{collections::BTreeMap, fs, path::Path};

use plimsoll_wire::{
    json,
    proto::{
        CloseSessionResponse, DescribeResponse, Message, OpenSessionResponse, RunResponse,
        SessionRunResponse,
    },
};
use serde::Deserialize;

use super::Reply;

#[derive(Deserialize)]
pub struct Exchange {
    pub origin: String,
    pub what: String,
    pub procedure: String,
    pub method: String,
    pub request: Part,
    pub answer: Part,
}

#[derive(Deserialize)]
pub struct Part {
    #[serde(default)]
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

pub fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/exchanges")
}

/// Every exchange by its number, `47` (spellings, no exchange) left out.
pub fn all() -> BTreeMap<String, Exchange> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let number = name.split('-').next().unwrap().to_owned();
        if number != "47" {
            let text = fs::read(&path).unwrap();
            all.insert(number, serde_json::from_slice(&text).unwrap());
        }
    }
    all
}

impl Exchange {
    /// The answer as a daemon sends it to a client that speaks
    /// `application/proto`: errors are JSON in any case.
    pub fn reply(&self) -> Reply {
        let mut reply = Reply {
            status: self.answer.status,
            body: self.answer.body.clone().into_bytes(),
            ..Default::default()
        };
        if reply.status == 200 {
            reply.body = self.message_bytes();
        }
        for (name, value) in &self.answer.headers {
            match (name.as_str(), reply.status) {
                ("plimsoll-request-id", _) => {}
                ("content-type", 200) => {
                    reply = reply.header("content-type", "application/proto");
                }
                _ => reply = reply.header(name, value),
            }
        }
        reply
    }

    fn message_bytes(&self) -> Vec<u8> {
        fn encode<M: Message + serde::de::DeserializeOwned>(text: &str) -> Vec<u8> {
            json::read::<M>(text.as_bytes()).unwrap().encode_to_vec()
        }
        let text = &self.answer.body;
        match self.procedure.as_str() {
            "CloseSession" => encode::<CloseSessionResponse>(text),
            "Describe" => encode::<DescribeResponse>(text),
            "OpenSession" => encode::<OpenSessionResponse>(text),
            "Run" => encode::<RunResponse>(text),
            "SessionRun" => encode::<SessionRunResponse>(text),
            other => panic!("{other}"),
        }
    }
}
