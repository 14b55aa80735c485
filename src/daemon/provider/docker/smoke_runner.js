'use strict';
// Runs as a step of a project: tries what a hostile step would try on the runner.
const fs = require('fs');
const open = [];
const runner = process.env.PLIMSOLL_RUNNER_PID || '1';
for (const [name, flags] of [['fd/0', 'r'], ['fd/1', 'r'], ['fd/1', 'w'], ['mem', 'r']]) {
  for (const pid of new Set(['1', runner])) {
    try {
      fs.closeSync(fs.openSync(`/proc/${pid}/${name}`, flags));
      open.push(name);
    } catch (error) {
      if (!['EACCES', 'EPERM'].includes(error.code)) open.push(`${name} ${error.code}`);
    }
  }
}
process.stdout.write(JSON.stringify([...new Set(open)]));
