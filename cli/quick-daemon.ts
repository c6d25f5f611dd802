import { randomBytes } from 'node:crypto'
import { type Socket, connect, isIP } from 'node:net'
import { parseResponse, type Client } from '../shared/client/client.ts'
import { readDaemonFile } from '../shared/client/discovery.ts'
import { DoorwardError } from '../shared/errors.ts'
import { readSecretFile } from '../shared/home/home.ts'
import { challengeHeader, isProof, toEndpoint, proofHeader } from '../shared/client/identity.ts'
import { isAlive } from '../shared/home/lock.ts'
import { version } from '../shared/version.ts'
import type { Asker } from './context.ts'

/*
 * Two questions to a daemon that is well, over one bare connection: who it is, and what a command wants to know.
 * To load node:http and to run each of its functions for the first time is a sixth of the time of `oauth token`,
 * which scripts run again and again. What is not the usual answer of our daemon is left to the client that knows
 * what it may be (`shared/client.ts`).
 */

/** That the usual client has to be asked: nothing here says what is wrong. */
export class NotQuick extends Error {}

export type QuickDaemon = Pick<Client, 'get' | 'close'>

type Answer = { readonly status: number; readonly head: string; readonly text: string }
type Ask = (path: string, header: string, limit: Limit) => Promise<Answer>
/** How long a whole answer may take, and what it is when it takes longer. */
type Limit = { readonly ms: number; readonly late: () => Error }

/** Where a daemon is that needs no look at names; `run/daemon.json` has no path behind it. */
const place = /^http:\/\/((127(?:\.\d{1,3}){3}|\[::1\]):(\d+))$/
/** Of an answer with its head: no token is so long. */
const mostBytes = 256 * 1024

/** The daemon of a home, which has proved that it is ours. Throws `NotQuick`, or what keeps a file from being read. */
export const connectQuickly = async ({ home, userAgent }: Asker): Promise<QuickDaemon> => {
  const daemon = await readDaemonFile(home)
  const [, host = '', name = '', port] = place.exec(daemon?.url ?? '') ?? []
  const address = name.replace(/[[\]]/g, '')
  const isWritten = isIP(address) !== 0 && String(Number(port)) === port
  // Of another version something has to be said.
  if (!daemon || !isWritten || daemon.version !== version || !isAlive(daemon.pid))
    throw new NotQuick()
  const apiToken = (await readSecretFile(home.apiToken))?.trim() ?? ''
  if (!/^[\x21-\x7e]+$/.test(apiToken)) throw new NotQuick()

  const socket = connect(Number(port), address)
  const ask = askOver(socket, [`Host: ${host}`, `User-Agent: ${userAgent}`])
  try {
    const challenge = randomBytes(32).toString('hex')
    const { status, head } = await ask('/health', `${challengeHeader}: ${challenge}`, soon)
    const [, proof = ''] = new RegExp(`^${proofHeader}: ([0-9a-f]+)$`, 'im').exec(head) ?? []
    const there = toEndpoint(socket.remoteAddress, socket.remotePort)
    if (status !== 200 || !isProof(proof, apiToken, challenge, there)) throw new NotQuick()
  } catch (error) {
    socket.destroy()
    throw error
  }
  return {
    get: async <Value>(path: string, { timeoutMs = 30_000 }: { timeoutMs?: number } = {}) => {
      const limit = { ms: timeoutMs, late: () => silent(daemon.url) }
      const { status, text } = await ask(path, `Authorization: Bearer ${apiToken}`, limit)
      return parseResponse(status, text) as Value
    },
    // The end of the process ends it; to take it apart would take its time.
    close: () => void socket.unref(),
  }
}

/** A daemon that is well needs a few milliseconds; the usual client waits on for one that is not. */
const soon: Limit = { ms: 300, late: () => new NotQuick() }

const silent = (url: string): DoorwardError =>
  new DoorwardError('daemon-unreachable', `the daemon at ${url} does not answer`, {
    hint: 'doorward daemon status',
  })

/** One question after the other; each rejects with `NotQuick` for what is no whole answer. */
const askOver = (socket: Socket, usualHeaders: readonly string[]): Ask => {
  let bytes = Buffer.alloc(0)
  let settle: ((answer: Answer | Error) => void) | undefined
  const fail = () => settle?.(new NotQuick())
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk])
    try {
      const answer = answerIn(bytes)
      if (answer) settle?.(answer)
    } catch {
      fail()
    }
  })
  socket.on('error', fail)
  socket.on('close', fail)
  return async (path, header, { ms, late }) =>
    new Promise((resolve, reject) => {
      if (socket.destroyed) return reject(new NotQuick())
      const timer = setTimeout(() => settle?.(late()), ms)
      settle = (answer) => {
        clearTimeout(timer)
        settle = undefined
        bytes = Buffer.alloc(0)
        if (!(answer instanceof Error)) return resolve(answer)
        socket.destroy()
        reject(answer)
      }
      const lines = [`GET ${path} HTTP/1.1`, ...usualHeaders, 'Accept: application/json', header]
      socket.write(`${lines.join('\r\n')}\r\n\r\n`)
    })
}

const begin = 'HTTP/1.1 '

/** The one answer that these bytes are; undefined while it is not whole. Throws for what our daemon does not say. */
const answerIn = (bytes: Buffer): Answer | undefined => {
  if (bytes.length > mostBytes) throw new NotQuick()
  const end = bytes.indexOf('\r\n\r\n')
  const head = bytes.toString('latin1', 0, end === -1 ? bytes.length : end)
  // Whoever speaks something else may wait for a word of ours.
  if (!head.startsWith(begin.slice(0, head.length)) || /(?<!\r)\n/.test(head)) throw new NotQuick()
  if (end === -1) return undefined
  const [, status] = /^HTTP\/1\.1 ([2-5]\d\d) /.exec(head) ?? []
  const [sized, ...more] = head.matchAll(/^(?:content-length: (\d+)|transfer-encoding:.*)$/gim)
  const length = sized?.[1]
  if (status === undefined || length === undefined || more.length > 0) throw new NotQuick()
  const body = bytes.subarray(end + 4)
  if (body.length > Number(length)) throw new NotQuick()
  if (body.length < Number(length)) return undefined
  return { status: Number(status), head, text: body.toString('utf8') }
}
