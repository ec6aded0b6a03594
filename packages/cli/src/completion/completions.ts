import { type AnyCommand, type FlagTable, isFamily } from '../command.js';
import { COMMANDS, findCommand } from '../commands/all.js';
import { allFlags } from '../options/general-flags.js';

/** A word that could be typed next. */
interface Completion {
  readonly word: string;
  readonly about: string;
}

/**
 * Lines for a shell: the words that can replace the last of the typed words. zsh and fish also get the meaning of each word. If
 * there is no line, the shell completes file names.
 */
export function completionsFor(words: readonly string[], shell: string): string {
  const typed = words.at(-1) ?? '';
  return candidates(words)
    .filter(({ word }) => word.startsWith(typed))
    .map(({ word, about }) => lineFor(shell, word, about))
    .join('\n');
}

function lineFor(shell: string, word: string, about: string): string {
  if (shell === 'fish') return `${word}\t${about}`;
  return shell === 'zsh' ? `${word.replaceAll(':', '\\:')}:${about}` : word;
}

function candidates(words: readonly string[]): Completion[] {
  const before = words.slice(0, -1);
  const typed = words.at(-1) ?? '';
  const named = findCommand(before);
  if (named === null) return before.length > 0 ? [] : COMMANDS.map(completionOf);
  const { name, command } = named;
  if (isFamily(command)) return before.length > 1 ? [] : command.commands.map(completionOf);
  const flags = allFlags(command);
  const chosen = choicesOf(before.at(-1)!, flags);
  if (chosen !== null) return chosen;
  if (typed.startsWith('-')) {
    return Object.entries(flags).map(([flag, { describe }]) => ({ word: `--${flag}`, about: describe }));
  }
  const position = positionOf(before.slice(name.split(' ').length), flags);
  const choices = Object.values(command.arguments)[position]?.choices ?? [];
  return choices.map((word) => ({ word, about: '' }));
}

function completionOf({ name, summary }: AnyCommand): Completion {
  return { word: name, about: summary };
}

/** What can follow an option: its values; none if it takes another value; null if no value follows. */
function choicesOf(last: string, flags: FlagTable): Completion[] | null {
  const flag = last.startsWith('--') ? flags[last.slice(2)] : undefined;
  if (flag === undefined || flag.type === 'boolean') return null;
  return (flag.choices ?? []).map((word) => ({ word: String(word), about: '' }));
}

/** Index of the positional argument that follows these words. */
function positionOf(words: readonly string[], flags: FlagTable): number {
  let position = 0;
  for (const [i, word] of words.entries()) {
    const takesValue = i > 0 && choicesOf(words[i - 1]!, flags) !== null;
    if (!word.startsWith('-') && !takesValue) position++;
  }
  return position;
}
