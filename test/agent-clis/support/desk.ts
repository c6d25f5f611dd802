import type { ChildProcess } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { programs } from './programs.ts'

/*
 * A person at a terminal: an own folder that the programs know already, and the keys that are pressed.
 */

/** Settings by which no program asks a question before its first line. */
export const writeDeskSettings = async (home: string, folder: string): Promise<void> => {
  const write = async (path: string, value: unknown) =>
    writeFile(join(home, path), JSON.stringify(value))
  await write('.claude.json', {
    hasCompletedOnboarding: true,
    lastOnboardingVersion: '2.1.332',
    theme: 'dark',
    autoUpdates: false,
    customApiKeyResponses: { approved: ['key-canary'], rejected: [] },
    projects: { [folder]: { hasTrustDialogAccepted: true } },
  })
  await mkdir(join(home, '.gemini'), { recursive: true })
  await write('.gemini/trustedFolders.json', { [folder]: 'TRUST_FOLDER' })
}

/** A folder with a codex that starts no server in the background, which would outlive the test. */
export const makeCodex = async (folder: string): Promise<string> => {
  const path = join(folder, 'codex')
  await writeFile(path, `#!/bin/sh\nexec '${join(programs, 'codex')}' "$@" --no-daemon\n`)
  await chmod(path, 0o755)
  return folder
}

/** The terminal of a program: answers what programs ask a terminal, and waits for what they show. */
export class Desk {
  readonly #child: ChildProcess
  #shown = ''
  #look: (() => void) | undefined

  constructor(child: ChildProcess) {
    this.#child = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.#shown += text
      // DSR, where the cursor is, and DA1, what the terminal is: ECMA-48, DEC VT510.
      if (text.includes('\u001b[6n')) this.press('\u001b[1;1R')
      if (/\u001b\[0?c/.test(text)) this.press('\u001b[?62;c')
      this.#look?.()
    })
  }

  press(keys: string): void {
    this.#child.stdin?.write(keys)
  }

  /** Resolves when the screen has shown this since the last key, white space and colours left out. */
  async untilShown(pattern: RegExp): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#look = () => {
        if (!pattern.test(toPlain(this.#shown))) return
        this.#shown = ''
        resolve()
      }
      this.#child.once('close', () => reject(new Error(`${pattern}: ${toPlain(this.#shown)}`)))
      this.#look()
    })
  }

  async untilEnded(): Promise<void> {
    if (this.#child.exitCode !== null) return
    await new Promise((resolve) => this.#child.once('close', resolve))
  }
}

const toPlain = (text: string): string =>
  text
    .replaceAll(/\u001b(\][^\u0007\u001b]*|\[[0-9;?<>=]*[ -/]*[@-~]|[^\][])/g, '')
    .replaceAll(/\s/g, '')
