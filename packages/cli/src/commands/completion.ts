import { realpathSync } from 'node:fs';
import { command } from '../command.js';
import { print } from '../terminal/outcome.js';

const SHELLS = ['bash', 'zsh'] as const;

export const completionCommand = command({
  name: 'completion',
  positionals: '[shell]',
  describe: 'Print what makes bash or zsh complete commands, flags and their values',
  builder: (yargs) =>
    yargs
      .positional('shell', { choices: SHELLS, describe: 'By default the one that SHELL names' })
      .example('source <($0 completion)', 'In ~/.bashrc or ~/.zshrc: also for "npx shardtool"'),
  handler: async ({ shell }) => {
    const isZsh = process.env.SHELL?.endsWith('zsh') === true || process.env.ZSH_NAME !== undefined;
    await print((shell ?? (isZsh ? 'zsh' : 'bash')) === 'zsh' ? zshScript() : bashScript());
  },
});

/** How the program that prints this is called again: what `npx` finds may be in no folder of PATH. */
function asks(shell: (typeof SHELLS)[number]): string {
  const quoted = [process.execPath, realpathSync(process.argv[1]!)].map((text) => `'${text.replaceAll("'", `'\\''`)}'`);
  return `SHELL=${shell} ${quoted.join(' ')} --get-yargs-completions`;
}

/** The words behind `npx` are completed where the first is shardtool; all others as before. */
function bashScript(): string {
  return `_shardtool() {
  local word="\${COMP_WORDS[COMP_CWORD]}" found
  mapfile -t found < <(${asks('bash')} "\${COMP_WORDS[@]}" 2>/dev/null)
  mapfile -t COMPREPLY < <(compgen -W "$(printf '%q ' "\${found[@]}")" -- "$word")
}
_shardtool_npx() {
  if [[ "\${COMP_WORDS[1]}" == shardtool && $COMP_CWORD -gt 1 ]]; then
    COMP_WORDS=("\${COMP_WORDS[@]:1}")
    COMP_CWORD=$((COMP_CWORD - 1))
    _shardtool
  elif [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W shardtool -- "\${COMP_WORDS[1]}"))
  fi
}
complete -o bashdefault -o default -F _shardtool shardtool
complete -p npx &>/dev/null || complete -o bashdefault -o default -F _shardtool_npx npx`;
}

function zshScript(): string {
  return `#compdef shardtool npx
_shardtool() {
  local -a found
  found=("\${(@f)$(${asks('zsh')} "\${words[@]}" 2>/dev/null)}")
  if [[ -n "\${found[*]}" ]]; then _describe 'values' found; else _default; fi
}
_shardtool_npx() {
  if [[ "\${words[2]}" == shardtool && $CURRENT -gt 2 ]]; then
    shift words
    CURRENT=$((CURRENT - 1))
    _shardtool
  elif (( $+functions[_npm] )); then _npm; else _default; fi
}
compdef _shardtool shardtool
compdef _shardtool_npx npx`;
}
