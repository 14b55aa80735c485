"""`pr-receipt run` against fake daemons: what is sent, what is kept, and what becomes of everything else."""

from __future__ import annotations

import base64
import json
import socket
import subprocess

import cli_fake
import pytest
from cli_tool import BINARY
from receipt_repo import BAD, GOOD, REPORT, STEP, Repo, answering, environment

FILES = ["bundle.jsonl", "receipt.cdx.json", "receipt.dsse.json", "receipt.pub", "report.html", "summary.md", "test-result.dsse.json"]


def run(cli, repo, daemon, head, *args, flags=("--step", STEP, "--report", REPORT), env=None, **options):
    event = repo.event(head)
    env = {**environment(event), **(env or {})}
    return cli("pr-receipt", "run", "--json", "--daemon", daemon.url, "--repo", repo.path, *flags, *args, env=env, **options)


def predicate(folder, name="receipt.dsse.json"):
    envelope = json.loads((folder / name).read_text())
    return json.loads(base64.b64decode(envelope["payload"]))["predicate"]


def verify(cli, repo, head, folder="plimsoll-receipt", *args):
    return cli("pr-receipt", "verify", "--json", "--repo", repo.path, "--head", head, *args, folder)


def test_a_passing_pull_request(cli, fake, repo):
    head = repo.change()
    daemon = fake(answering())
    summary, outputs = cli.folder / "summary.md", cli.folder / "outputs"
    summary.write_text("no newline at the end")
    done = run(cli, repo, daemon, head, env={"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_OUTPUT": str(outputs)})
    assert done.code == 0, done.text
    assert (done.json["result"], done.json["passed"], done.json["key_kind"], done.json["ran"]) == ("PASSED", 2, "ephemeral", "yes")
    receipt = cli.cwd / "plimsoll-receipt"
    assert sorted(file.name for file in receipt.iterdir()) == FILES
    # One request, with the floor, the commit's files and nothing else.
    (call,) = daemon.calls
    assert call.request.minimum_isolation == "kernel"
    assert [file.path for file in call.request.project.files] == [".github/workflows/plimsoll-receipt.yml", "lib.js", "package.json", "test/add.test.js"]
    assert list(call.request.project.artifacts) == ["plimsoll-report.xml"]
    # The summary begins a line of its own; the outputs are of fixed alphabets.
    assert summary.read_text().startswith("no newline at the end\n## plimsoll receipt: PASSED\n")
    values = dict(line.split("=") for line in outputs.read_text().splitlines())
    assert values == {"result": "PASSED", "bom_sha256": done.json["bom_sha256"], "key_id": done.json["key_id"], "exit": "0"}
    checked = verify(cli, repo, head)
    assert checked.code == 0, checked.text
    assert all(step["ok"] for step in checked.json["steps"])
    # The BOM's own check needs only the directory.
    again = cli("sbom", "--check", "--pub", receipt / "receipt.pub", "--bundle", receipt / "bundle.jsonl", receipt / "receipt.cdx.json")
    assert again.code == 0, again.text


def test_a_failing_test_is_a_receipt_too(cli, fake, repo):
    head = repo.change()
    done = run(cli, repo, fake(answering(BAD, (1,))), head)
    assert (done.code, done.cls, done.json["result"]) == (5, "tests_failed", "FAILED")
    checked = verify(cli, repo, head)
    assert (checked.code, checked.cls) == (5, "tests_failed")
    assert [step["n"] for step in checked.json["steps"] if not step["ok"]] == [13]


def test_never_failing_on_tests(cli, fake, repo):
    assert run(cli, repo, fake(answering(BAD, (1,))), repo.change(), "--fail-on", "never").code == 0


@pytest.mark.parametrize(
    "report, codes, options",
    [
        (GOOD, (1,), {}),  # the exit code says more than the report
        (None, (0,), {}),
        (b"<testsuites>", (0,), {}),
        (b"<testsuites/>", (0,), {}),
        (b"<!DOCTYPE x><testsuites/>", (0,), {}),
        (b"<testsuites><testcase name='a'><skipped/></testcase></testsuites>", (0,), {}),
        (b"\xff", (0,), {}),
        (GOOD, (), {}),
        (GOOD, (0,), {"outcome": 3}),
    ],
    ids=["exit", "missing", "cut", "empty", "dtd", "all-skipped", "binary", "no-steps", "timed-out"],
)
def test_never_a_pass_without_one(cli, fake, repo, report, codes, options):
    """And the receipt of it holds, with exit 5."""
    head = repo.change()
    done = run(cli, repo, fake(answering(report, codes, **options)), head)
    assert done.code == 5 and done.json["result"] == "FAILED", done.text
    checked = verify(cli, repo, head)
    assert checked.code == 5 and checked.cls in ("tests_failed", "no_tests"), checked.text


def test_a_copy_of_a_passing_report_on_stdout_changes_nothing(cli, fake, repo):
    import cli_proto

    def answer(call):
        pb = cli_proto.messages()
        steps = [pb.StepResult(command=STEP, stdout=GOOD + b"::error::x\n##[error]x\nRECEIPT OK\n", exit_code=1)]
        result = pb.ProjectResult(steps=steps, outcome=1, artifacts=[pb.Artifact(path="plimsoll-report.xml", content=BAD), pb.Artifact(path="receipt.cdx.json", content=b"{}")])
        call.answer(cli_proto.answer(call.request, project=result))

    done = run(cli, repo, fake(answer), repo.change())
    assert done.code == 5 and done.json["failed"] == 1
    assert b"::error" not in done.out + done.err


def test_hostile_names_reach_no_log_and_no_markup(cli, fake, repo):
    names = ["</code><script>alert(1)</script>", "`x`", "::add-mask::x", "##[error]x", "a\u202ecod", "|", "![i](http://x)", "@everyone", "x" * 5000]
    from xml.sax.saxutils import quoteattr

    cases = "".join(f"<testcase name={quoteattr(name)}><failure/></testcase>" for name in names)
    head = repo.change("`x`|<img src=x onerror=1>.js", b"1\n")
    repo.write("logo::add-mask::x.png", b"\x89PNG\xff")
    head = repo.commit("more")
    event = repo.event(head)
    summary = cli.folder / "summary.md"
    env = {**environment(event), "GITHUB_STEP_SUMMARY": str(summary)}
    daemon = fake(answering(f"<testsuites>{cases}</testsuites>".encode(), (1,)))
    done = cli("pr-receipt", "run", "--daemon", daemon.url, "--repo", repo.path, "--step", STEP, "--report", REPORT, env=env)
    assert done.code == 5
    for line in (done.out + done.err).splitlines():
        assert not line.startswith(b"::") and b"##[" not in line
    text = summary.read_text()
    assert "\u202e" not in text and len(text) < 256 << 10
    # Outside of code spans and the fence nothing of a stranger is left.
    import re

    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", re.sub(r"```sh.*?```", "", text, flags=re.S))
    for hostile in ("<", "script", "![", "@everyone", "add-mask", "onerror"):
        assert hostile not in outside, (hostile, outside)
    page = (cli.cwd / "plimsoll-receipt/report.html").read_text()
    assert "<script>alert" not in page and "<img" not in page
    # An event's branch name with a command in it met no shell.
    assert not list(cli.folder.rglob("pwned"))


def test_a_directory_exchanged_during_the_run_is_not_followed(cli, fake, repo):
    """Everything is in the directory that was made, and nothing where its path leads by then."""
    head = repo.change()
    out, trap, moved = (cli.cwd / name for name in ("plimsoll-receipt", "trap", "moved"))
    trap.mkdir()
    reply = answering()

    def answer(call) -> None:
        out.rename(moved)
        out.symlink_to(trap)
        reply(call)

    done = run(cli, repo, fake(answer), head)
    assert (done.code, done.cls, done.error["ran"]) == (3, "not_kept", "yes"), done.text
    assert "exchanged" in done.text
    assert list(trap.iterdir()) == []
    assert sorted(file.name for file in moved.iterdir()) == FILES
    checked = verify(cli, repo, head, "moved")
    assert checked.code == 0, checked.text


def test_a_link_is_no_directory_for_a_receipt(cli, fake, repo):
    (cli.cwd / "elsewhere").mkdir()
    (cli.cwd / "link").symlink_to("elsewhere")
    daemon = fake(answering())
    for out in ("link", "link/"):
        done = run(cli, repo, daemon, repo.change(), "--out", out)
        assert (done.code, done.cls) == (2, "exists"), done.text
    assert daemon.calls == [] and list((cli.cwd / "elsewhere").iterdir()) == []


def test_nothing_is_appended_to_a_part_of_the_receipt(cli, fake, repo):
    """Refused before the run: a part with more behind its end would be none."""
    daemon = fake(answering())
    head = repo.change()
    (cli.cwd / "link").symlink_to("out/receipt.cdx.json")
    for summary in ("out/receipt.cdx.json", "out/bundle.jsonl", "out/report.html", "./out/../out/more.md", cli.cwd / "out/x", "link"):
        done = run(cli, repo, daemon, head, "--out", "out", "--summary", summary)
        assert (done.code, done.cls, done.error["ran"]) == (2, "usage", "no"), done.text
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        done = run(cli, repo, daemon, head, "--out", "out", env={name: str(cli.cwd / "out/summary.md")})
        assert (done.code, done.cls) == (2, "usage"), done.text
    assert daemon.calls == [] and not (cli.cwd / "out").exists()
    # Beside it is as good a place as any.
    assert run(cli, repo, daemon, head, "--out", "out", "--summary", "out.md").code == 0
    assert (cli.cwd / "out.md").exists() and verify(cli, repo, head, "out").code == 0


def test_the_private_key_is_nowhere(cli, fake, repo):
    """Only its public half is written: nothing in the directory is a private key or names a seed."""
    assert run(cli, repo, fake(answering()), repo.change()).code == 0
    for file in (cli.cwd / "plimsoll-receipt").iterdir():
        assert b"PRIVATE KEY" not in file.read_bytes(), file
    assert not (cli.home / ".config").exists()


def test_nothing_is_contacted_for_a_dangerous_event(cli, repo):
    event = repo.event(repo.change())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for name, extras in (("pull_request_target", 2), ("workflow_run", 2), ("push", 1)):
            for extra in ((), ("--allow-event", name))[:extras]:
                done = cli("pr-receipt", "run", "--daemon", url, "--repo", repo.path, "--step", "true", *extra, env=environment(event, name))
                assert (done.code, done.cls) == (2, "usage"), done.text
                with pytest.raises(BlockingIOError):
                    listener.accept()
    assert not (cli.cwd / "plimsoll-receipt").exists()


@pytest.mark.parametrize(
    "answer, code, cls, ran",
    [
        (lambda call: call.error(412, "failed_precondition", reason=cli_fake.REASONS["isolation"]), 4, "not_dispatched", "no"),
        (lambda call: call.error(503, "unavailable"), 3, "may_have_run", "maybe"),
        (lambda call: call.drop(), 3, "may_have_run", "maybe"),
        (answering(GOOD, isolation="container"), 3, "unchecked", "maybe"),
        (answering(GOOD, record={"result_sha256": "0" * 64}), 3, "unchecked", "maybe"),
    ],
    ids=["isolation", "retryable", "killed", "weaker", "wrong"],
)
def test_runs_that_give_no_receipt(cli, fake, repo, answer, code, cls, ran):
    daemon = fake(answer)
    done = run(cli, repo, daemon, repo.change())
    assert (done.code, done.cls, done.error["ran"]) == (code, cls, ran), done.text
    assert len(daemon.calls) == 1
    if code == 4:
        assert not (cli.cwd / "plimsoll-receipt").exists()


def test_capacity_is_waited_for(cli, fake, repo):
    def answer(call):
        if len(daemon.calls) == 1:
            return call.error(429, "resource_exhausted", reason=cli_fake.REASONS["capacity"])
        return answering()(call)

    daemon = fake(answer)
    assert run(cli, repo, daemon, repo.change()).code == 0
    assert len(daemon.calls) == 2


def test_the_configuration_is_the_base_commit_s(cli, fake, repo):
    toml = f'version = 1\nsteps = ["{STEP}"]\nreports = ["{REPORT}"]\nexclude = ["docs/**"]\n'
    repo.write(".plimsoll/receipt.toml", toml.encode())
    repo.write("docs/long.md", b"text\n")
    repo.base = repo.commit("configuration")
    # The pull request changes it: its own text is not used, and the reviewer is told.
    repo.write(".plimsoll/receipt.toml", b'version = 1\nsteps = ["true"]\n')
    head = repo.change()
    daemon = fake(answering())
    done = run(cli, repo, daemon, head, flags=())
    assert done.code == 0, done.text
    assert list(daemon.calls[0].request.project.steps) == [STEP]
    stated = predicate(cli.cwd / "plimsoll-receipt")
    assert stated["config"]["source"] == "base" and stated["tested"]["excluded"][0]["reason"] == "configured"
    checked = verify(cli, repo, head, "plimsoll-receipt", "--base-ref", repo.base)
    assert checked.code == 0
    assert any(".plimsoll/receipt.toml" in warning for warning in checked.json["warnings"])
    strict = verify(cli, repo, head, "plimsoll-receipt", "--base-ref", repo.base, "--require-workflow-unchanged")
    assert (strict.code, strict.cls) == (1, "workflow_changed")
    # A file and flags exclude each other; the tested commit's is used when asked for, and said.
    both = run(cli, repo, daemon, head, "--out", "other")
    assert (both.code, both.cls) == (2, "usage")
    other = run(cli, repo, fake(answering(None)), head, "--config-from", "tested", "--out", "third", flags=())
    assert other.code == 0 and predicate(cli.cwd / "third")["config"]["source"] == "tested"
    assert any("which the pull request controls" in w for w in verify(cli, repo, head, "third").json["warnings"])


def test_files_that_cannot_be_sent_are_listed_with_a_reason(cli, fake, repo):
    repo.write("logo.png", b"\x89PNG\r\n\xff")
    repo.write("a\\b.txt", b"x")
    repo.write("line\nbreak", b"x")
    repo.write("--help", b"sent\n")
    repo.write(".git-not/config", b"sent\n")
    repo.write("run.sh", b"#!/bin/sh\n")
    (repo.path / "run.sh").chmod(0o755)
    (repo.path / "link").symlink_to("/etc/passwd")
    repo.write("large.txt", b"x" * (5 << 20))
    repo.commit("everything")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.base},module")
    repo.git("commit", "-q", "-m", "module")
    head = repo.git("rev-parse", "HEAD")
    daemon = fake(answering())
    done = run(cli, repo, daemon, head)
    assert done.code == 0, done.text
    stated = predicate(cli.cwd / "plimsoll-receipt")["tested"]
    reasons = {file["path"]: file["reason"] for file in stated["excluded"]}
    assert reasons == {"a\\b.txt": "path", "large.txt": "too-large", "line\nbreak": "path", "link": "symlink", "logo.png": "not-utf8", "module": "submodule"}
    sent = {file.path for file in daemon.calls[0].request.project.files}
    assert {"--help", ".git-not/config", "run.sh"} <= sent and stated["executable"] == 1
    assert verify(cli, repo, head).code == 0


def test_too_many_files_are_refused_before_anything_is_sent(cli, fake, repo):
    for number in range(250):
        repo.write(f"many/{number}.txt", b"x" * number)
    daemon = fake(answering())
    done = run(cli, repo, daemon, repo.commit("many"))
    assert (done.code, done.cls) == (1, "request") and daemon.calls == []
    assert "many/249.txt (249)" in done.error["do"]
    assert not (cli.cwd / "plimsoll-receipt").exists()


def test_added_files_are_listed_and_named_where_they_stand_in_for_others(cli, fake, repo):
    repo.write("data/table.bin", b"\xff\xfe")
    head = repo.commit("binary")
    (cli.folder / "extra").mkdir()
    (cli.folder / "extra/table.bin").write_text("not the commit's\n")
    daemon = fake(answering())
    done = run(cli, repo, daemon, head, "--add", f"{cli.folder / 'extra'}=data")
    assert done.code == 0, done.text
    stated = predicate(cli.cwd / "plimsoll-receipt")["tested"]
    assert [file["path"] for file in stated["added"]] == ["data/table.bin"]
    assert "stands where a file of the commit was left out" in (cli.cwd / "plimsoll-receipt/summary.md").read_text()
    checked = verify(cli, repo, head)
    assert checked.code == 0
    assert any("data/table.bin is not of the commit and stands where" in warning for warning in checked.json["warnings"])
    # A path that is sent already is refused.
    (cli.folder / "extra/lib.js").write_text("1\n")
    again = run(cli, repo, daemon, head, "--add", f"{cli.folder / 'extra'}=data/..", "--out", "b")
    assert again.code == 2
    (cli.folder / "test").mkdir()
    (cli.folder / "test/add.test.js").write_text("1\n")
    assert run(cli, repo, daemon, head, "--add", f"{cli.folder / 'test'}=test", "--out", "c").cls == "usage"


def test_an_added_directory_is_never_behind_a_link_of_the_pull_request(cli, fake, repo):
    outside = cli.folder / "outside"
    (outside / "lib").mkdir(parents=True)
    (outside / "lib/token").write_text("secret\n")
    daemon = fake(answering())

    def configured(add, *args):
        repo.write(".plimsoll/receipt.toml", f'version = 1\nsteps = ["{STEP}"]\nreports = ["{REPORT}"]\nadd = ["{add}"]\n'.encode())
        repo.base = repo.commit("configuration")
        return run(cli, repo, daemon, repo.change(content=add.encode()), *args, flags=())

    (repo.path / "node_modules").symlink_to(outside)
    (repo.path / "vendor").symlink_to(outside)
    for add in ("node_modules=node_modules", "vendor/lib=lib", "../outside=x", f"{outside}=x", ".git=x"):
        for args in ((), ("--config-from", "tested")):
            done = configured(add, *args)
            assert (done.code, done.cls) == (2, "config"), (add, done.text)
    repo.git("rm", "-q", ".plimsoll/receipt.toml")
    repo.base = repo.commit("no configuration")
    head = repo.change(content=b"1\n")
    for add in ("node_modules=x", "vendor/lib=x", "../outside=x", f"{repo.path / 'vendor/lib'}=x"):
        done = run(cli, repo, daemon, head, "--add", add)
        assert (done.code, done.cls) == (2, "usage"), (add, done.text)
    assert daemon.calls == []


def test_init_follows_no_link(cli):
    (cli.folder / "elsewhere").mkdir()
    (cli.cwd / ".github").symlink_to(cli.folder / "elsewhere")
    done = cli("pr-receipt", "init", "--json")
    assert (done.code, done.cls) == (2, "io"), done.text
    assert list((cli.folder / "elsewhere").iterdir()) == [] and not (cli.cwd / ".plimsoll").exists()


def test_init_says_where_it_is_not_at_home(cli):
    for name in ("a\nb.yml", "a b.yml", "${{x}}.yml", "a.yml/", "é.yml"):
        done = cli("pr-receipt", "init", "--json", "--path", f".github/workflows/{name}")
        assert (done.code, done.cls) == (2, "usage"), done.text
    assert not (cli.cwd / ".github").exists()
    assert b"there is no .git here" in cli("pr-receipt", "init").err
    (cli.cwd / ".git").mkdir()
    again = cli("pr-receipt", "init", "--path", ".github/workflows/other.yml")
    assert (again.code, again.cls) == (2, "exists")
    (cli.cwd / ".plimsoll/receipt.toml").unlink()
    again = cli("pr-receipt", "init", "--path", ".github/workflows/other.yml")
    assert again.code == 0 and b"no .git" not in again.err, again.text


def test_no_code_of_the_repository_runs_on_this_machine(cli, fake, repo):
    """Hooks, a file system monitor, filters, replacements and a work tree that is not the commit's."""
    proof = cli.folder / "ran"
    script = cli.folder / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {proof}\ncat\n")
    script.chmod(0o755)
    repo.write(".gitattributes", b"*.js filter=evil diff=evil merge=evil\n")
    head = repo.change()
    for key in ("core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "core.sshCommand", "diff.evil.textconv", "core.pager", "merge.evil.driver", "uploadpack.packObjectsHook"):
        repo.git("config", key, str(script))
    repo.git("config", "core.hooksPath", str(cli.folder / "hooks"))
    (cli.folder / "hooks").mkdir()
    for hook in ("post-checkout", "reference-transaction", "pre-commit", "post-index-change"):
        (cli.folder / "hooks" / hook).write_bytes(script.read_bytes())
        (cli.folder / "hooks" / hook).chmod(0o755)
    proof.unlink(missing_ok=True)
    (repo.path / "lib.js").write_text("the work tree is not what is tested\n")
    # A replacement and a graft would show another commit for the head.
    repo.git("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=", "replace", head, repo.base)
    proof.unlink(missing_ok=True)
    daemon = fake(answering())
    done = run(cli, repo, daemon, head)
    assert done.code == 0, done.text
    sent = {file.path: file.content for file in daemon.calls[0].request.project.files}
    assert sent["lib.js"] == "module.exports = (a, b) => b + a;\n"
    assert verify(cli, repo, head).code == 0
    assert not proof.exists()


@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_both_kinds_of_repositories(cli, fake, tmp_path, format):
    repo = Repo(tmp_path / "other", f"--object-format={format}")
    head = repo.change()
    assert len(head) == {"sha1": 40, "sha256": 64}[format]
    done = run(cli, repo, fake(answering()), head)
    assert done.code == 0, done.text
    assert verify(cli, repo, head).code == 0
    assert ("swh:1:cnt:" in (cli.cwd / "plimsoll-receipt/receipt.cdx.json").read_text()) is (format == "sha1")


def test_a_merge_is_made_again(cli, fake, repo):
    head = repo.change()
    repo.git("checkout", "-q", repo.base)
    repo.write("other.js", b"1\n")
    base = repo.commit("the base moves on")
    tree = repo.git("merge-tree", "--write-tree", base, head)
    merge = repo.git("commit-tree", tree, "-p", base, "-p", head, "-m", "merge")
    evil_tree = repo.git("rev-parse", f"{head}^{{tree}}")
    daemon = fake(answering())

    def merged(commit, out):
        env = {**environment(repo.event(head, base)), "GITHUB_SHA": commit}
        return cli("pr-receipt", "run", "--json", "--daemon", daemon.url, "--repo", repo.path, "--tested", "merge", "--step", STEP, "--report", REPORT, "--out", out, env=env)

    done = merged(merge, "good")
    assert done.code == 0, done.text
    assert verify(cli, repo, head, "good").code == 0
    told = cli("pr-receipt", "verify", "--repo", repo.path, "--head", head, "good").out.decode().splitlines()[-1]
    assert told.startswith(f"RECEIPT OK  example-org/adder#7 at {head[:12]} merged into {base[:12]}  PASSED")
    # A base that is only the author's own is none.
    ours = ("--base-ref", repo.base)
    assert verify(cli, repo, head, "good", "--base-ref", base).code == 0
    for strict in ((), ("--require-workflow-unchanged",)):
        assert verify(cli, repo, head, "good", *ours, *strict).cls == "git_commit"
    swapped = repo.git("commit-tree", tree, "-p", head, "-p", base, "-m", "merge")
    evil = repo.git("commit-tree", evil_tree, "-p", base, "-p", head, "-m", "merge")
    for commit in (swapped, evil):
        done = merged(commit, "bad")
        assert (done.code, done.cls) == (1, "git_commit"), done.text
    assert len(daemon.calls) == 1


def test_without_an_event_every_fact_is_a_flag(cli, fake, repo):
    head = repo.change()
    facts = ["--repository", "https://git.example/org/adder", "--pr", "7", "--head", head, "--base", repo.base, "--base-ref", "main"]
    daemon = fake(answering())
    common = ["pr-receipt", "run", "--daemon", daemon.url, "--repo", repo.path, "--step", STEP, "--report", REPORT]
    done = cli(*common, *facts)
    assert done.code == 0, done.text
    assert verify(cli, repo, head).code == 0
    for missing in range(0, len(facts), 2):
        assert cli(*common, "--out", "x", *facts[:missing], *facts[missing + 2 :]).cls == "usage"
    for name, value in (("--pr", "x"), ("--head", head[:-1]), ("--repository", "javascript:x"), ("--base-ref", "a b")):
        changed = [*facts]
        changed[changed.index(name) + 1] = value
        assert cli(*common, "--out", "x", *changed).cls == "usage", name
    assert len(daemon.calls) == 1


def test_the_output_is_never_written_over(cli, fake, repo):
    head = repo.change()
    daemon = fake(answering())
    (cli.cwd / "there").mkdir()
    (cli.cwd / "there/file").write_text("x")
    (cli.cwd / "link").symlink_to(cli.cwd / "there")
    for out in ("there", "link", "there/file"):
        done = run(cli, repo, daemon, head, "--out", out)
        assert (done.code, done.cls) == (2, "exists"), done.text
    assert daemon.calls == []
    (cli.cwd / "empty").mkdir()
    assert run(cli, repo, daemon, head, "--out", "empty").code == 0


def test_a_key_of_one_s_own(cli, fake, repo):
    cli("keygen", "--out", "mine")
    head = repo.change()
    done = run(cli, repo, fake(answering()), head, "--key", "mine.key")
    assert done.code == 0 and done.json["key_kind"] == "file"
    assert verify(cli, repo, head, "plimsoll-receipt", "--pub", "mine.pub").code == 0
    cli("keygen", "--out", "other")
    assert verify(cli, repo, head, "plimsoll-receipt", "--pub", "other.pub").cls == "key_mismatch"


def test_a_replay(cli, fake, repo):
    head = repo.change()
    assert run(cli, repo, fake(answering()), head).code == 0
    common = ["pr-receipt", "verify", "--json", "--repo", repo.path, "--head", head, "--replay", "plimsoll-receipt", "--daemon"]
    for report, codes, word, code in (
        (GOOD, (0,), "identical", 0),
        (GOOD.replace(b"0.000812", b"0.9"), (0,), "same verdict", 0),
        (BAD, (1,), "different verdict", 5),
        (GOOD.replace(b"adds zero", b"adds one"), (0,), "different verdict", 5),
    ):
        done = cli(*common, fake(answering(report, codes)).url)
        assert (done.code, done.json["replay"]) == (code, word), done.text
    assert cli(*common, cli_fake.closed_port()).code == 4
    assert cli("pr-receipt", "verify", "--repo", repo.path, "--head", head, "--replay", "plimsoll-receipt").cls == "usage"


def test_the_binary_starts_no_daemon_for_a_refused_flag(cli, repo):
    event = repo.event(repo.change())
    for args, cls in ((("--provider", "wasm"), "usage"), ((), "usage"), (("--daemon", "ftp://x"), "usage")):
        assert cli("pr-receipt", "run", "--repo", repo.path, "--step", "x", *args, env=environment(event)).cls == cls
    help = subprocess.run([BINARY, "pr-receipt", "run", "--help"], capture_output=True, text=True, check=True).stdout
    assert "--fail-on" in help and "GITHUB_EVENT_PATH" in help
