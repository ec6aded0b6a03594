import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const SOURCES = ['packages/*/src', 'python/src'];
/** Variables by the prefixes of those who define them, and any variable that is read by `env.NAME` or `environ["NAME"]`. */
const FAMILIES =
  /\b(?:AWS|HF|SLURM|GS|OTEL|TORCHELASTIC|SHARDTOOL|CLOUD_RUN|SKYPILOT|OMPI|PMI)_[A-Z][A-Z_0-9]*\b|\b(?:HTTPS?|NO)_PROXY\b|\bJOB_COMPLETION[A-Z_]*\b/g;
const READ = /\benv(?:iron)?(?:\.get\(|\[|\.)["']?([A-Z][A-Z_0-9]+)\b/g;

/** Names of the same form that are not read from the environment: codes of warnings, and switches of the build. */
const NO_VARIABLES = [
  ...['SHARDTOOL_WAITING', 'SHARDTOOL_RETRY', 'SHARDTOOL_PACK', 'SHARDTOOL_OTHER_CODEC', 'SHARDTOOL_NO_CLASS'],
  ...['SHARDTOOL_NARROWED', 'SHARDTOOL_LINKS_SKIPPED'],
  // Prefixes of names.
  ...['OTEL_EXPORTER_OTLP_METRICS_', 'OTEL_EXPORTER_OTLP_'],
  // The home folder is not for shardtool to configure.
  'HOME',
];

test('docs/environment.md lists every environment variable that the product reads', () => {
  const files = execFileSync('git', ['ls-files', '--', ...SOURCES], { encoding: 'utf8' })
    .trim()
    .split('\n');
  const read = files
    .filter((file) => /\.(ts|py|cjs|mjs)$/.test(file) && !file.includes('.test.'))
    .flatMap((file) => {
      const text = readFileSync(file, 'utf8');
      return [...(text.match(FAMILIES) ?? []), ...Array.from(text.matchAll(READ), ([, name]) => name!)];
    });
  const page = readFileSync('docs/environment.md', 'utf8');
  const missing = [...new Set(read)].filter(
    (name) => !NO_VARIABLES.includes(name) && !name.startsWith('ERR_') && !page.includes(`\`${name}\``),
  );
  expect(missing.sort()).toEqual([]);
});
