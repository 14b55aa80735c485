// Runs one project inside a sandbox: reads a plan on standard input, runs its steps, answers with one
// authenticated frame on standard output. Node.js 18 or later, nothing but its own library.
//
// Trust: the steps are hostile and have this process's uid. What they must not get is the report key. It
// arrives on standard input, which is drained and closed before the first step exists, and then lives in
// this process's memory, which the guard library (LD_PRELOAD, non-dumpable) and the kernel keep closed and
// into which no debugger can be called.
// Everything a step can reach (files, its own streams, timing) is data to bound, never to believe.

import { spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

const MiB = 1 << 20;
const PLAN_MAX = 64 * MiB;
const STREAM_MAX = MiB;
const COMMAND_MAX = 16 << 10;
const STEPS_ENCODED_MAX = 3 * MiB;
const ARTIFACTS_MAX = 8 * MiB;
const BODY_MAX = 15 * MiB;
const PROOF_MS = 15_000;
const DEBUG_SIGNAL = 'SIGUSR1';
const TIMER_MAX_MS = 2 ** 31 - 1;
const MARKER = '<<<PLIMSOLL_REPORT_V3>>>';
const NO_KEY = '0'.repeat(64);
const SHELL = '/bin/sh';
const HOST_CLIENT = '/tmp/plimsoll-host.mjs';
const OPEN_DESCRIPTORS = '--open-descriptors';

// A fault of the request or the sandbox that ends the plan; its message goes into the report.
class SetupError extends Error {}

// ---- isolation -------------------------------------------------------------------------------------

// Whether a process of this uid is refused this process's descriptors and memory. The probe is a shell's
// redirections: each refused open is one line of its standard error, an open that works is none, so
// anything unforeseen counts as not proven.
function isolationProven(openDescriptors) {
  const own = `/proc/${process.pid}`;
  const opens = openDescriptors
    ? [[`${own}/mem`, '<']]
    : [[`${own}/fd/0`, '<'], [`${own}/fd/1`, '<'], [`${own}/fd/1`, '>>'], [`${own}/mem`, '<']];
  const probe = spawnSync(SHELL, ['-c', opens.map(([file, how]) => `true ${how}${file}`).join('\n')], {
    env: {},
    stdio: ['ignore', 'ignore', 'pipe'],
    timeout: PROOF_MS,
    killSignal: 'SIGKILL',
    maxBuffer: 64 << 10,
  });
  if (probe.error) return false;
  const lines = probe.stderr.toString('utf8').split('\n').filter((line) => line !== '');
  return lines.length === opens.length && lines.every(
    (line, i) => line.includes(opens[i][0]) && /: (Permission denied|Operation not permitted)$/.test(line),
  );
}

// Takes Node's debug signal away: its own handler would open an inspector on the loopback interface, which
// every step shares, and whoever speaks to that evaluates code in here, beside the report key. A listener
// takes the handler's place. Proven by raising the signal: the listener hears it and no inspector is open.
async function inspectorClosed() {
  const heard = await new Promise((resolve) => {
    const late = setTimeout(resolve, PROOF_MS, false);
    process.on(DEBUG_SIGNAL, () => {
      clearTimeout(late);
      resolve(true);
    });
    process.kill(process.pid, DEBUG_SIGNAL);
  });
  if (!heard) return false;
  if (!process.features.inspector) return true;
  const { url } = await import('node:inspector');
  return url() === undefined;
}

// ---- plan ------------------------------------------------------------------------------------------

// Reads standard input to its end and puts /dev/null in its place, so that no descriptor opened later
// becomes number 0 and no step can find the plan there.
function drainStdin() {
  const chunks = [];
  let total = 0;
  for (;;) {
    const chunk = Buffer.alloc(256 << 10);
    let n;
    try {
      n = fs.readSync(0, chunk, 0, chunk.length, null);
    } catch (e) {
      if (e.code === 'EOF') break;
      if (e.code !== 'EAGAIN') throw new SetupError('the plan could not be read');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      continue;
    }
    if (n === 0) break;
    total += n;
    if (total <= PLAN_MAX) chunks.push(chunk.subarray(0, n));
  }
  fs.closeSync(0);
  fs.openSync('/dev/null', 'r');
  if (total > PLAN_MAX) throw new SetupError('plan is too large');
  const plan = Buffer.concat(chunks);
  for (const chunk of chunks) chunk.fill(0);
  return plan;
}

function listOf(plan, name, valid) {
  const list = plan[name] ?? [];
  if (!Array.isArray(list) || !list.every(valid)) throw new SetupError(`plan is malformed: ${name}`);
  return list;
}

const isText = (value) => typeof value === 'string';

// Takes the key out of the plan first: whatever is wrong behind it can then be reported and believed.
function parsePlan(bytes, onKey) {
  let plan;
  try {
    plan = JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new SetupError('plan is not JSON');
  } finally {
    bytes.fill(0);
  }
  if (plan === null || typeof plan !== 'object' || Array.isArray(plan)) throw new SetupError('plan is not an object');
  const { reportKey } = plan;
  delete plan.reportKey;
  if (!isText(reportKey) || !/^[0-9a-fA-F]{64}$/.test(reportKey)) throw new SetupError('plan carries no report key');
  const key = Buffer.from(reportKey, 'hex');
  onKey(createHmac('sha256', key));
  key.fill(0);
  const budget = plan.stepTimeoutMs;
  if (!Number.isInteger(budget) || budget < 1) throw new SetupError('plan is malformed: stepTimeoutMs');
  if (plan.hostSDK != null && !isText(plan.hostSDK)) throw new SetupError('plan is malformed: hostSDK');
  return {
    files: listOf(plan, 'files', (f) => f !== null && typeof f === 'object' && isText(f.path) && isText(f.content)),
    steps: listOf(plan, 'steps', isText),
    artifacts: listOf(plan, 'artifacts', isText),
    env: listOf(plan, 'env', isText),
    hostSDK: plan.hostSDK || '',
    budgetMs: Math.min(budget, TIMER_MAX_MS),
  };
}

// ---- work directory ---------------------------------------------------------------------------------

const inside = (root, file) => file.startsWith(root.endsWith('/') ? root : `${root}/`);

// The file a relative name means below the work directory, or null.
function resolveBelow(work, name) {
  if (name.includes('\0')) return null;
  const file = path.resolve(work, name);
  return inside(work, file) ? file : null;
}

function writeFiles(work, files) {
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = fs.constants;
  for (const { path: name, content } of files) {
    const file = resolveBelow(work, name);
    if (file === null) throw new SetupError(`illegal file path: ${name}`);
    try {
      fs.mkdirSync(path.dirname(file), { recursive: true });
      const fd = fs.openSync(file, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o666);
      try {
        fs.writeFileSync(fd, content);
      } finally {
        fs.closeSync(fd);
      }
    } catch (e) {
      throw new SetupError(`cannot write file ${name}: ${e.code ?? 'failed'}`);
    }
  }
}

// The environment of the steps. NODE_OPTIONS is appended to, because an image's own options stay in force.
function stepEnvironment(plan) {
  const env = { ...process.env };
  for (const entry of plan.env) {
    const equals = entry.indexOf('=');
    if (equals < 1 || entry.includes('\0')) throw new SetupError('plan env entry is not NAME=value');
    env[entry.slice(0, equals)] = entry.slice(equals + 1);
  }
  env.PLIMSOLL_RUNNER_PID = String(process.pid);
  if (plan.hostSDK !== '') {
    try {
      fs.writeFileSync(HOST_CLIENT, plan.hostSDK);
    } catch (e) {
      throw new SetupError(`cannot write the host client: ${e.code ?? 'failed'}`);
    }
    env.NODE_OPTIONS = [env.NODE_OPTIONS, `--import=file://${HOST_CLIENT}`].filter(Boolean).join(' ');
  }
  return env;
}

// ---- steps ------------------------------------------------------------------------------------------

// Bytes of a stream up to the cap. A character that the cap splits is left out whole.
class Capture {
  chunks = [];
  size = 0;
  truncated = false;

  // False once there is more than the cap.
  take(chunk) {
    const room = STREAM_MAX - this.size;
    this.truncated ||= chunk.length > room;
    const kept = chunk.length > room ? chunk.subarray(0, room) : chunk;
    this.chunks.push(kept);
    this.size += kept.length;
    return !this.truncated;
  }

  text() {
    const bytes = Buffer.concat(this.chunks);
    return (this.truncated ? withoutSplitCharacter(bytes) : bytes).toString('utf8');
  }
}

function withoutSplitCharacter(bytes) {
  let lead = bytes.length - 1;
  while (lead >= 0 && lead > bytes.length - 4 && (bytes[lead] & 0xc0) === 0x80) lead -= 1;
  if (lead < 0) return bytes;
  const length = bytes[lead] >= 0xf0 ? 4 : bytes[lead] >= 0xe0 ? 3 : bytes[lead] >= 0xc0 ? 2 : 1;
  return lead + length > bytes.length ? bytes.subarray(0, lead) : bytes;
}

// Runs one command. It ends when the shell has gone and both streams are closed: a process it left behind
// that still holds a stream is part of the step. Budget and flood kill the step's whole process group; our
// ends of the streams are closed too, since a process that left the group may hold the others.
function runStep(command, cwd, env, budgetMs) {
  return new Promise((resolve) => {
    const streams = { stdout: new Capture(), stderr: new Capture() };
    const began = process.hrtime.bigint();
    let timedOut = false;
    let killed = false;
    let child;
    const done = (status) => resolve({
      command: textPrefix(command, COMMAND_MAX),
      stdout: streams.stdout.text(),
      stderr: streams.stderr.text(),
      stdoutTruncated: streams.stdout.truncated,
      stderrTruncated: streams.stderr.truncated,
      exitCode: timedOut ? 124 : killed ? -1 : (status ?? -1),
      timedOut,
      durationMs: Number((process.hrtime.bigint() - began) / 1_000_000n),
    });
    try {
      child = spawn(SHELL, ['-c', command], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    } catch {
      done(null);
      return;
    }
    const kill = () => {
      killed = true;
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        child.kill('SIGKILL');
      }
      child.stdout?.destroy();
      child.stderr?.destroy();
    };
    const timer = setTimeout(() => {
      timedOut = true;
      kill();
    }, budgetMs);
    for (const name of ['stdout', 'stderr']) {
      child[name]?.on('data', (chunk) => {
        if (!killed && !streams[name].take(chunk)) kill();
      });
      child[name]?.on('error', () => {});
    }
    let spawned = true;
    child.on('error', () => {
      if (child.pid !== undefined || !spawned) return;
      spawned = false;
      clearTimeout(timer);
      done(null);
    });
    child.on('close', (status) => {
      clearTimeout(timer);
      if (spawned) done(status);
    });
  });
}

async function runSteps(plan, work, env) {
  const steps = [];
  let room = STEPS_ENCODED_MAX;
  for (const command of plan.steps) {
    const step = await runStep(command, work, env, plan.budgetMs);
    room -= fitStep(step, room);
    steps.push(step);
    if (step.timedOut || step.exitCode !== 0) break;
  }
  return steps;
}

// Cuts a step's streams so that its encoding takes at most `room` bytes; returns what it takes.
function fitStep(step, room) {
  let size = encodedSize(step);
  for (const name of ['stdout', 'stderr']) {
    if (size <= room) break;
    const own = encodedSize(step[name]) - 2;
    step[`${name}Truncated`] = true;
    step[name] = encodedPrefix(step[name], Math.max(0, own - (encodedSize(step) - room)));
    size = encodedSize(step);
  }
  return size;
}

// ---- encoding ---------------------------------------------------------------------------------------

const encodedSize = (value) => Buffer.byteLength(JSON.stringify(value)) + (isText(value) ? 0 : 1);

// The longest prefix of whole characters for which `cost(code point)` sums to at most `budget`.
function prefixWithin(text, budget, cost) {
  let used = 0;
  let end = 0;
  while (end < text.length) {
    const point = text.codePointAt(end);
    used += cost(point);
    if (used > budget) break;
    end += point > 0xffff ? 2 : 1;
  }
  return text.slice(0, end);
}

const utf8Size = (point) => (point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4);

// Bytes of a code point inside a JSON string as JSON.stringify writes it.
function jsonSize(point) {
  if (point === 0x22 || point === 0x5c) return 2;
  if (point < 0x20) return [8, 9, 10, 12, 13].includes(point) ? 2 : 6;
  if (point >= 0xd800 && point <= 0xdfff) return 6;
  return utf8Size(point);
}

const textPrefix = (text, bytes) => (Buffer.byteLength(text) <= bytes ? text : prefixWithin(text, bytes, utf8Size));
const encodedPrefix = (text, bytes) => prefixWithin(text, bytes, jsonSize);

// ---- artifacts --------------------------------------------------------------------------------------

// Reads one artifact: null when it is none, otherwise its bytes, at most `room` + 1 of them. Processes that
// steps left behind may swap files and directories while this runs, so what counts is the kernel's own path
// of what was opened, not the path that was asked for.
function readArtifact(root, work, name, room) {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = fs.constants;
  const asked = resolveBelow(work, name);
  if (asked === null) return null;
  let fd;
  try {
    const real = fs.realpathSync.native(asked);
    if (!inside(root, real) || !fs.lstatSync(real).isFile()) return null;
    fd = fs.openSync(real, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const stat = fs.fstatSync(fd);
    if (!stat.isFile() || !inside(root, fs.readlinkSync(`/proc/self/fd/${fd}`))) return null;
    if (stat.size > room) return Buffer.alloc(room + 1);
    return readUpTo(fd, room + 1);
  } catch {
    return null;
  } finally {
    if (fd !== undefined) fs.closeSync(fd);
  }
}

function readUpTo(fd, most) {
  const chunks = [];
  let total = 0;
  while (total < most) {
    const chunk = Buffer.alloc(Math.min(64 << 10, most - total));
    const n = fs.readSync(fd, chunk, 0, chunk.length, null);
    if (n === 0) break;
    chunks.push(chunk.subarray(0, n));
    total += n;
  }
  return Buffer.concat(chunks);
}

function captureArtifacts(work, names) {
  const artifacts = [];
  let room = ARTIFACTS_MAX;
  let root;
  try {
    root = fs.realpathSync.native(work);
  } catch {
    return { artifacts, artifactsTruncated: false };
  }
  for (const name of names) {
    const content = readArtifact(root, work, name, room);
    if (content === null) continue;
    if (content.length > room) return { artifacts, artifactsTruncated: true };
    room -= content.length;
    artifacts.push({ path: name, content: content.toString('base64') });
  }
  return { artifacts, artifactsTruncated: false };
}

// ---- report -----------------------------------------------------------------------------------------

// The report's encoding within its bound: artifacts go first, from the end.
function encodeReport(report) {
  if (report.error === undefined) {
    let size = encodedSize(report);
    while (size > BODY_MAX && report.artifacts.length > 0) {
      size -= encodedSize(report.artifacts.pop());
      report.artifactsTruncated = true;
    }
  }
  const body = Buffer.from(JSON.stringify(report));
  if (body.length <= BODY_MAX) return body;
  return Buffer.from('{"error":"sandbox result exceeds the encoded response budget"}');
}

function writeFrame(report, mac) {
  const body = encodeReport(report);
  const tag = mac === null ? NO_KEY : mac.update(body).digest('hex');
  const frame = Buffer.concat([Buffer.from(`\n${MARKER} ${body.length} ${tag}\n`), body]);
  process.stdout.write(frame, () => process.exit(0));
}

async function runPlan(plan) {
  const work = path.resolve(process.env.PLIMSOLL_WORK || '/work');
  writeFiles(work, plan.files);
  const env = stepEnvironment(plan);
  const steps = await runSteps(plan, work, env);
  return { steps, ...captureArtifacts(work, plan.artifacts) };
}

async function main() {
  let mac = null;
  let report;
  try {
    delete process.env.LD_PRELOAD;
    const closed = await inspectorClosed();
    const proven = isolationProven(process.argv.includes(OPEN_DESCRIPTORS));
    const plan = parsePlan(drainStdin(), (made) => {
      mac = made;
    });
    if (!proven) throw new SetupError('runner descriptor and memory isolation could not be proven');
    if (!closed) throw new SetupError('the runner can be debugged from outside');
    report = await runPlan(plan);
  } catch (e) {
    report = { error: e instanceof SetupError ? e.message : 'the runner failed' };
  }
  writeFrame(report, mac);
}

process.on('uncaughtException', () => process.exit(70));
await main();
