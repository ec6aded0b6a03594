#!/usr/bin/env node
// This file has to be understood by any Node from version 10 on, so it has no syntax of later ones, and loads nothing else before it
// has looked at the version.
const oldest = require('../package.json').engines.node.replace('>=', '');

function isOlder(found: string, wanted: string): boolean {
  const [ours, theirs] = [found, wanted].map((version) => version.split('.').map(Number)) as [number[], number[]];
  return ours[0]! < theirs[0]! || (ours[0] === theirs[0] && ours[1]! < theirs[1]!);
}

if (isOlder(process.versions.node, oldest)) {
  console.error(
    `shardtool: Node ${oldest} or newer is needed, and ${process.execPath} is Node ${process.versions.node}: install a newer one (https://nodejs.org).`,
  );
  process.exitCode = 1;
} else {
  import('./main.js');
}
