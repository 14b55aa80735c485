//! The floor of a call: one HTTP/1.1 exchange on a connection of its own, with
//! nothing behind it. The server is another process, as the daemon is.

use std::{
    convert::Infallible,
    io::{BufRead as _, BufReader, Read as _},
    net::SocketAddr,
    pin::pin,
    process::{Child, Command, Stdio},
};

use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

use crate::measure::Outcome;

/// The argument that makes this program the server; the bytes of its answer follow.
pub const SERVE: &str = "--serve-echo";

/// A running echo server; it ends with this value.
pub struct Echo {
    process: Child,
    address: SocketAddr,
}

impl Echo {
    /// Starts this program again as a server that answers with `bytes` bytes.
    pub fn start(bytes: usize) -> Outcome<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .args([SERVE, &bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = process.stdout.take().ok_or("the server has no output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line.trim().parse()?;
        Ok(Echo { process, address })
    }

    /// One exchange as the client makes it; gives the length of the answer.
    pub async fn exchange(&self, body: Bytes) -> Outcome<usize> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::post("/")
            .header(header::HOST, self.address.to_string())
            .body(Full::new(body))?;
        let answer = async {
            let response = sender.send_request(request).await?;
            response.into_body().collect().await
        };
        let mut connection = pin!(connection);
        tokio::select! {
            biased;
            answer = answer => Ok(answer?.to_bytes().len()),
            ended = &mut connection => Err(format!("the connection ended: {ended:?}").into()),
        }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // It ends by itself at the end of its input; this only waits for it.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// The server: answers until its input ends.
pub fn serve(bytes: usize) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(crate::workers())
        .enable_all()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    println!("{}", listener.local_addr()?);
    let answer = Bytes::from(vec![0; bytes]);
    runtime.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            let answer = answer.clone();
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(
                TokioIo::new(stream),
                service_fn(move |request| respond(request, answer.clone())),
            ));
        }
    });
    std::io::stdin().read_to_end(&mut Vec::new())?;
    runtime.shutdown_background();
    Ok(())
}

async fn respond(
    request: Request<Incoming>,
    answer: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    // A body that does not arrive shows as an exchange that fails.
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(answer)))
}
