import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fixtureAgent } from '../fixtures.ts'

export type Report = {
  readonly prompt: string
  /** Which command it was. */
  readonly name: string
  readonly release: () => void
}

/** Where the fixture agent `reports` says that it runs; it ends when its report is released. */
export type Reports = {
  /** For `command` of an agent, in YAML. */
  readonly command: string
  /** The same with a name in its reports. */
  readonly named: (name: string) => string
  /** The next report, in the order they came. */
  readonly next: () => Promise<Report>
  /** How many came that `next` has not given out. */
  readonly unread: () => number
  readonly close: () => void
}

/** Starts a small server for the reports of agents. */
export const startReports = async (): Promise<Reports> => {
  const unread: Report[] = []
  let wake: () => void = () => undefined
  const server = createServer((request, response) => {
    let prompt = ''
    request.on('data', (chunk: Buffer) => (prompt += chunk.toString()))
    request.once('end', () => {
      const name = request.url?.slice(1) ?? ''
      unread.push({ prompt, name, release: () => void response.end() })
      wake()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const named = (name: string) =>
    JSON.stringify(fixtureAgent('reports', `http://127.0.0.1:${port}/${name}`))
  return {
    command: named(''),
    named,
    next: async () => {
      for (;;) {
        const report = unread.shift()
        if (report) return report
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    unread: () => unread.length,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
