/**
 * The language check of `npm run check`: words and phrases that a stranger reads twice, with what to write instead.
 *
 * It reads all pages of the documentation, and all programs with their comments, identifiers, help and messages.
 *
 *   node scripts/check-language.mjs    fails, with a line for each finding
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** Patterns, and what to write instead. */
const WORDS = [
  [/\b(?:from )?afar\b/i, 'remote'],
  [/\banew\b/i, 'again'],
  [/\bmend(?:s|ed|ing)?\b/i, 'fix'],
  [/\bsooner\b/i, 'faster, earlier'],
  [/\bwho(?:m)?ever\b/i, 'the caller, the user, anyone who'],
  [/\bnobody\b/i, 'no one, or a passive'],
  [/\bsomebody\b/i, 'the user, someone'],
  [/\bso many\b/i, 'a count or a limit'],
  [/\bof one's own\b/i, 'custom'],
  [/\bgo(?:es|ing)? on (?!a\b|the\b|to\b)/i, 'resumes, continues'],
  [/\bheld against\b/i, 'checked against'],
  [/\bwhat becomes? of\b/i, 'name the result'],
  [/\bin one go\b/i, 'at once'],
  [/\b(?:that|which|it) is none\b/i, 'is not a ...'],
  [
    /(?<!there )\bis no (?:[a-z]+ )?(?:dataset|image|key|name|number|folder|file|shard|index|column)\b/i,
    'is not a ...',
  ],
  [/\b(?:that|which|they|has|have|names?|values?) (?:is|are) no (?!longer\b|more\b|less\b)/i, 'is not a ...'],
  [/\bwith which one is\b/i, 'name the two things'],
  [/\btells? (?:no|none)\b/i, 'does not show'],
  [/\bnothing is a\b/i, 'there is no ... before'],
  [/\bup to, but without\b/i, 'to ... - 1'],
  [/\b(?:null|missing|false|true) where (?:it|they|that|there)\b/i, 'null if'],
  [/\b(?:images|samples|photos|files|bytes|MB|rows|batches|requests) a second\b/i, 'per second'],
  [/\b(?:microseconds|µs|bytes|a byte|rows?|bits?) a (?:sample|image|row|shard|line|file)\b/i, 'per'],
  [/\b(?:crew|slab|fate)s?\b/i, 'workers, buffer, outcome'],
  [/\bring(?:s|ing)? (?:a|the) bell\b/i, 'notify, wake'],
  [/\bbreathes?\b/i, 'yield'],
  [/\bWhereabouts\b/, 'ErrorContext'],
  [/\bcompanions?\b/i, 'extra field'],
  [/\bneeded last\b/i, 'needed furthest in the future'],
  [/\bof which there\b/i, 'repeat the noun'],
  [/\b(?:a person's|own) step\b/i, 'custom step'],
  [/\bhow a [a-z]+(?: [a-z]+)? is asked\b/i, 'options for requests'],
  [/\b(?:sees? to it|such a one|what there is)\b/i, 'name the thing'],
];

/** Pages that users read, and those for contributors. */
const PAGES = [
  'README.md',
  'CONTRIBUTING.md',
  'ARCHITECTURE.md',
  'SECURITY.md',
  'python/README.md',
  'examples/cluster/README.md',
  ...readdirSync(path.join(root, 'docs'))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `docs/${file}`),
  ...readdirSync(path.join(root, 'packages')).map((name) => `packages/${name}/README.md`),
];

/** All files below a folder with one of these extensions, without what was installed or downloaded there. */
function filesBelow(folder, extensions) {
  return readdirSync(path.join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && extensions.includes(path.extname(entry.name)))
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)))
    .filter((file) => !/__pycache__|node_modules|\.cache/.test(file))
    .sort();
}

/** Findings in the lines of a file. */
function findingsIn(lines, file) {
  return lines.flatMap((line, i) =>
    WORDS.flatMap(([pattern, instead]) => {
      const found = pattern.exec(line);
      return found === null ? [] : [`${file}:${i + 1}: "${found[0]}": write ${instead}`];
    }),
  );
}

/** The lines of a page without code. */
function proseOf(text) {
  return text
    .replaceAll(/^```[\s\S]*?^```$/gm, (block) => block.replaceAll(/[^\n]/g, ''))
    .replaceAll(/`[^`\n]*`/g, '``')
    .split('\n');
}

const linesOf = (file) => readFileSync(path.join(root, file), 'utf8').split('\n');
const folders = ['bench', 'conformance', 'examples', 'python/src', 'python/tests', 'scripts', 'site', 'test'];
const sources = [
  ...filesBelow('packages', ['.ts', '.cts']).filter((file) => /^packages\/[a-z]+\/(src|page)\//.test(file)),
  ...folders.flatMap((folder) => filesBelow(folder, ['.ts', '.mjs', '.py'])),
].filter((file) => file !== 'scripts/check-language.mjs');
const findings = [
  ...PAGES.flatMap((page) => findingsIn(proseOf(readFileSync(path.join(root, page), 'utf8')), page)),
  ...sources.flatMap((file) => findingsIn(linesOf(file), file)),
];
for (const finding of findings) console.log(finding);
process.exitCode = findings.length > 0 ? 1 : 0;
