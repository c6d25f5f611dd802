import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'

/** A bus without service files: nothing that is installed here can be started by a message. */
export const startBus = async (folder: string, children: ChildProcess[]): Promise<string> => {
  const config = join(folder, 'bus.conf')
  await writeFile(
    config,
    `<busconfig><type>session</type><listen>unix:tmpdir=/tmp</listen><auth>EXTERNAL</auth>
     <policy context="default"><allow send_destination="*" eavesdrop="true"/>
     <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>`,
  )
  const child = spawn('dbus-daemon', [`--config-file=${config}`, '--nofork', '--print-address=1'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  children.push(child)
  return firstLine(child, child.stdout, 'dbus-daemon')
}

/** The first line a program writes. Rejects when it ends before. */
export const firstLine = async (
  child: ChildProcess,
  stream: Readable,
  name: string,
): Promise<string> =>
  new Promise((resolve, reject) => {
    let text = ''
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')).trim())
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`${name} ended with ${code}`)))
  })

/** Ends a program if it still runs. */
export const end = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
