import { inTypeScript, type Sentence, type Spelling } from './sentence.js';

/** Receives the text of a warning. */
type WarningSink = (message: string) => void;

let sink: WarningSink | null = null;
let spelled: Spelling = inTypeScript;

/**
 * Warns the user once, with a process warning unless {@link redirectWarnings} was called. `code` is the warning code of
 * Node, which distinguishes warnings.
 */
export function warn(code: string, warning: string | Sentence): void {
  const message = typeof warning === 'string' ? warning : warning.spelled(spelled);
  if (sink !== null) sink(message);
  else process.emitWarning(message, { type: 'ShardtoolWarning', code });
}

/** Redirects all warnings of this process, because the process that serves Python has no terminal. */
export function redirectWarnings(to: WarningSink): void {
  sink = to;
}

/** Sets how warnings of this process spell options. */
export function spellWarnings(spelling: Spelling): void {
  spelled = spelling;
}
