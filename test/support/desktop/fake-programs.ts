import { EventEmitter, once } from 'node:events'
import { chmod, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, join } from 'node:path'
import { temporaryFolder } from '../temporary.ts'

/** A call of one of them: its arguments, and what came on its standard input. */
export type Call = {
  readonly name: string
  readonly args: readonly string[]
  readonly stdin: string
}

/** Programs of a desktop that do nothing but tell how they were called. */
export type FakePrograms = {
  /** `PATH` with them before everything else. */
  readonly path: string
  /** The exit code of a program from now on; 0 unless told. */
  readonly exitWith: (name: string, code: number) => void
  /** The calls of a program so far, once there are as many. Throws after 10 s. */
  readonly untilCalled: (name: string, count?: number) => Promise<readonly Call[]>
  readonly callsOf: (name: string) => readonly Call[]
  readonly close: () => void
}

/** Puts programs of these names into a folder of their own. */
export const startFakePrograms = async (names: readonly string[]): Promise<FakePrograms> => {
  const folder = await temporaryFolder()
  const calls: Call[] = []
  const codes = new Map<string, number>()
  const news = new EventEmitter()
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      const call = JSON.parse(text) as Call
      calls.push(call)
      response.end(String(codes.get(call.name) ?? 0))
      news.emit('call')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  for (const name of names) {
    await writeFile(join(folder, name), programOf(name, port))
    await chmod(join(folder, name), 0o755)
  }
  const callsOf = (name: string) => calls.filter((call) => call.name === name)
  return {
    path: `${folder}${delimiter}${process.env['PATH'] ?? ''}`,
    exitWith: (name, code) => void codes.set(name, code),
    callsOf,
    untilCalled: async (name, count = 1) => {
      const signal = AbortSignal.timeout(10_000)
      while (callsOf(name).length < count) await once(news, 'call', { signal })
      return callsOf(name)
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const programOf = (name: string, port: number): string => `#!${process.execPath}
const args = process.argv.slice(2)
// xdg-open asks first whether it is there.
if (args[0] === 'help') process.exit(0)
let stdin = ''
process.stdin.on('data', (chunk) => (stdin += chunk))
process.stdin.on('end', async () => {
  const body = JSON.stringify({ name: ${JSON.stringify(name)}, args, stdin })
  const answer = await fetch('http://127.0.0.1:${port}/', { method: 'POST', body })
  process.exit(Number(await answer.text()))
})
`
