import type { AddressInfo } from 'node:net'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export type ReceivedMail = {
  readonly from: string
  readonly to: readonly string[]
  readonly user: string | undefined
  readonly isEncrypted: boolean
  readonly text: string
}

/** What to answer once the whole mail is there, and after how many milliseconds; a number is a code that refuses it. */
export type MailAnswer = 'take' | 'hang' | 'reset' | number | { readonly takeAfterMs: number }

/** A real mail server (smtp-server) on loopback that answers as it is told. */
export const startMailServer = async (options: SMTPServerOptions = {}) => {
  const mails: ReceivedMail[] = []
  const answers: MailAnswer[] = []
  let wake = (): void => undefined
  const sockets = new Set<{
    readonly destroy: () => unknown
    readonly resetAndDestroy?: () => unknown
  }>()
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS'],
    authOptional: true,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    closeTimeout: 10,
    logger: false,
    onAuth: ({ username, password }, _session, done) =>
      password === 'a pass@word'
        ? done(null, { user: username })
        : done(withCode(new Error('no such user'), 535)),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.once('end', () => {
        const { mailFrom, rcptTo } = session.envelope
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: session.user,
          isEncrypted: session.secure,
          text: Buffer.concat(chunks).toString(),
        })
        const answer = answers.shift() ?? 'take'
        if (answer === 'take') done()
        else if (typeof answer === 'object') setTimeout(done, answer.takeAfterMs)
        else if (answer === 'reset') for (const socket of sockets) socket.resetAndDestroy?.()
        else if (answer !== 'hang') done(withCode(new Error('not now'), answer))
      })
    },
    onClose: () => setImmediate(() => wake()),
    ...options,
  })
  server.on('error', () => undefined)
  server.server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    next: (...more: MailAnswer[]) => answers.push(...more),
    /** Nobody is connected any more. */
    left: async () => {
      while (server.connections.size > 0)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    },
    close: () => {
      // Not the sockets: one that is destroyed beneath its TLS ends the process (Node 20).
      for (const connection of server.connections) connection.close()
      server.close()
    },
  }
}

const withCode = (error: Error, responseCode: number): Error =>
  Object.assign(error, { responseCode })
