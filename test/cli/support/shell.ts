import { type ChildProcess, spawn } from 'node:child_process'
import { chmod, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Home } from '../../../shared/home/home.ts'
import { cleanEnvironment, cliMain } from '../../support/daemon/daemon.ts'
import { temporaryFolder } from '../../support/temporary.ts'

export type ShellName = 'bash' | 'bash with bash-completion' | 'zsh' | 'fish'

/** An interactive shell on a terminal of its own, with the completion of doorward loaded. */
export type Shell = {
  /** Types this and what a person presses then, and gives the command line as the shell has it then. */
  readonly typed: (keys: string) => Promise<string>
  /** Types this, and waits until the screen has shown what fits. */
  readonly shown: (keys: string, fits: RegExp) => Promise<string>
  readonly close: () => void
}

const starts: Readonly<Record<ShellName, { readonly command: string; readonly load: string }>> = {
  bash: {
    command: 'bash --noprofile --norc -i',
    load: 'eval "$(doorward completion bash)"',
  },
  'bash with bash-completion': {
    command: 'bash --noprofile --norc -i',
    load: '. /usr/share/bash-completion/bash_completion; . <(doorward completion bash)',
  },
  zsh: {
    command: 'zsh -f -i',
    load: 'bindkey -e; autoload -Uz compinit; compinit -u -D; source <(doorward completion zsh)',
  },
  fish: {
    command: 'fish --no-config -i',
    load: 'doorward completion fish | source',
  },
}

/** By script(1) of util-linux. `doorward` is on the PATH there, as after an installation. */
export const startShell = async (name: ShellName, home: Home): Promise<Shell> => {
  const folder = await temporaryFolder()
  const program = join(folder, 'doorward')
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${cliMain}' "$@"\n`)
  await chmod(program, 0o700)
  const { command, load } = starts[name]
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: folder,
    env: cleanEnvironment({
      DOORWARD_HOME: home.root,
      HOME: folder,
      PATH: `${folder}${delimiter}${process.env['PATH']}`,
      TERM: 'xterm',
      PS1: '$ ',
      INPUTRC: '/dev/null',
    }),
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: 60_000,
    killSignal: 'SIGKILL',
  })
  const screen = reader(child)
  let count = 0
  const typed = async (keys: string): Promise<string> => {
    count += 1
    const [from, to] = [`<${count}<`, `>${count}>`]
    // To the front of the line, to make the argument of an echo of what has become of it, and run that.
    const start = `printf '%s ' '${from.replace('<', "<''")}' `
    child.stdin?.write(`${keys}\u0001${start}\u0005 '${to.replace('>', ">''")}'\r`)
    const seen = await screen(new RegExp(`${from} (.*) ${to}`))
    return seen
  }
  child.stdin?.write(`${load}\r`)
  await typed('loaded')
  return {
    typed,
    shown: async (keys, fits) => {
      child.stdin?.write(keys)
      const seen = await screen(fits)
      child.stdin?.write('\u0003')
      return seen
    },
    close: () => {
      child.kill('SIGKILL')
    },
  }
}

/** Waits until what has been written since the last time fits; gives its first group, or all. */
const reader = (child: ChildProcess): ((fits: RegExp) => Promise<string>) => {
  let text = ''
  let look: () => void = () => undefined
  let ended: () => void = () => undefined
  child.stdout?.setEncoding('utf8').on('data', (more: string) => {
    text += more
    look()
  })
  child.once('close', () => ended())
  return async (fits) =>
    new Promise((resolve, reject) => {
      look = () => {
        const found = fits.exec(text)
        if (!found) return
        text = text.slice(found.index + found[0].length)
        look = () => undefined
        resolve(found[1] ?? found[0])
      }
      ended = () => reject(new Error(`the shell ended; it said: ${text}`))
      look()
    })
}
