import { realpathSync } from 'node:fs';
import { command } from '../command.js';
import { print } from '../terminal/outcome.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

export const completionCommand = command({
  name: 'completion',
  summary: 'Print a script that completes commands, options and their values',
  details: 'It works for shardtool and for "npx shardtool".',
  isLocal: true,
  arguments: {
    shell: { type: 'string', choices: SHELLS, describe: 'Shell of the script. Default: the shell that SHELL names' },
  },
  options: {},
  examples: [
    ['source <($0 completion bash)', 'In ~/.bashrc; zsh the same in ~/.zshrc'],
    ['$0 completion fish > ~/.config/fish/completions/shardtool.fish', 'Once, for fish'],
  ],
  handler: async ({ shell, json }) => {
    const name = (shell as Shell | undefined) ?? shellOf(process.env);
    const script = SCRIPTS[name](callFor(name));
    await print(json ? JSON.stringify({ shell: name, script }) : script);
  },
});

function shellOf({ SHELL = '', ZSH_NAME }: NodeJS.ProcessEnv): Shell {
  if (SHELL.endsWith('fish')) return 'fish';
  return SHELL.endsWith('zsh') || ZSH_NAME !== undefined ? 'zsh' : 'bash';
}

/** The command with which the script starts this program. With `npx`, the program may not be on the PATH. */
function callFor(shell: Shell): string {
  const escaped = shell === 'fish' ? "\\'" : `'\\''`;
  const quoted = [process.execPath, realpathSync(process.argv[1]!)].map((text) => `'${text.replaceAll("'", escaped)}'`);
  return `${quoted.join(' ')} __complete ${shell}`;
}

/** Words after `npx` are completed if the first is shardtool; all other words as before. */
const SCRIPTS: Readonly<Record<Shell, (call: string) => string>> = {
  bash: (call) => `_shardtool() {
  local word="\${COMP_WORDS[COMP_CWORD]}" found
  mapfile -t found < <(${call} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
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
complete -p npx &>/dev/null || complete -o bashdefault -o default -F _shardtool_npx npx`,

  zsh: (call) => `#compdef shardtool npx
_shardtool() {
  local -a found
  found=("\${(@f)$(${call} "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
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
compdef _shardtool_npx npx`,

  fish: (call) => `function __shardtool_complete
  set -l words (commandline -opc) (commandline -ct)
  if test "$words[1]" = npx
    set -e words[1]
    if test "$words[1]" != shardtool; or test (count $words) -lt 2
      return
    end
  end
  set -e words[1]
  set -l found (${call} $words 2>/dev/null | string match -v '')
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c shardtool -f -a '(__shardtool_complete)'
complete -c npx -n 'contains shardtool (commandline -opc)' -f -a '(__shardtool_complete)'`,
};
