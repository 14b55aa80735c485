'use strict';
// Runs inside a throw-away container, as a guest would. Says what it finds and
// judges nothing: the daemon does.
const fs = require('fs');
const net = require('net');
const cp = require('child_process');

const found = { rootWritable: false, mounts: [], writable: [], pidsMax: '', status: {}, interfaces: [], resolver: '', pong: null, boot: '' };
const unescaped = (text) => text.replace(/\\([0-7]{3})/g, (_, digits) => String.fromCharCode(parseInt(digits, 8)));
const text = (path) => { try { return fs.readFileSync(path, 'utf8'); } catch { return ''; } };

// Writable means that a byte written is there when it is read.
function holdsAByte(directory) {
  const path = `${directory === '/' ? '' : directory}/.plimsoll-smoke-${process.pid}`;
  let held = false;
  let made = false;
  try {
    const file = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT | fs.constants.O_EXCL, 0o600);
    made = true;
    try {
      fs.writeSync(file, Buffer.from([120]), 0, 1, 0);
      const back = Buffer.alloc(1);
      held = fs.readSync(file, back, 0, 1, 0) === 1 && back[0] === 120;
    } finally {
      fs.closeSync(file);
    }
  } catch { /* refused */ }
  if (made) { try { fs.unlinkSync(path); } catch { /* gone */ } }
  return held;
}

found.rootWritable = holdsAByte('/');
for (const line of text('/proc/mounts').split('\n')) {
  const [, point, kind, options] = line.split(' ');
  if (point) found.mounts.push({ point: unescaped(point), kind, options });
}
for (const point of new Set(found.mounts.map((mount) => mount.point))) {
  try {
    const stat = fs.statSync(point);
    if (stat.isDirectory()) {
      if (holdsAByte(point)) found.writable.push(point);
    } else if (stat.isFile()) {
      fs.closeSync(fs.openSync(point, 'a'));
      found.writable.push(point);
    }
  } catch { /* refused, or nothing to look at */ }
}
found.pidsMax = (text('/sys/fs/cgroup/pids.max') || text('/sys/fs/cgroup/pids/pids.max')).trim();
for (const line of text('/proc/self/status').split('\n')) {
  const [name, value] = line.split(':');
  if (['Uid', 'Gid', 'Groups'].includes(name)) found.status[name] = value.trim().split(/\s+/).filter(Boolean).map(Number);
}
found.interfaces = text('/proc/net/dev').split('\n').slice(2).map((line) => line.split(':')[0].trim()).filter(Boolean);
try { found.resolver = fs.readFileSync('/etc/resolv.conf').toString('base64'); } catch { /* judged as missing */ }
if (globalThis.PLIMSOLL_BOOT) {
  try {
    found.boot = cp.execFileSync('dmesg', { timeout: 3000, stdio: ['ignore', 'pipe', 'ignore'] }).subarray(0, 512).toString('latin1').split('\n')[0];
  } catch { /* a diagnostic only */ }
}

const say = () => process.stdout.write(JSON.stringify(found), () => process.exit(0));
if (globalThis.PLIMSOLL_SOCKET) {
  const socket = net.connect(globalThis.PLIMSOLL_SOCKET);
  let answer = '';
  socket.setTimeout(3000, () => { found.pong = 'no answer'; say(); });
  socket.on('connect', () => socket.write('ping'));
  socket.on('data', (data) => { answer += data; if (answer.length >= 4) { found.pong = answer; say(); } });
  socket.on('error', (error) => { found.pong = String(error.code); say(); });
} else {
  say();
}
