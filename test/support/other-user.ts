import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { promisify } from 'node:util'

/** The user "nobody" and its group, which own nothing; the numbers are Debian's and macOS allows any. */
const nobody = 65_534

const needsSudo = process.getuid?.() !== 0

/** Whether this machine lets us run a program as another user: as root, or by sudo without a password. */
export const hasOtherUser = (): boolean =>
  !needsSudo || spawnSync('sudo', ['-n', '-u', `#${nobody}`, 'true']).status === 0

/** Starts a script of Node as another user of this machine, in a folder that everyone has. */
export const startAsOther = (script: string, ...args: readonly string[]): ChildProcess => {
  const argv = ['--input-type=module', '-e', script, '--', ...args]
  const options = { cwd: '/', env: { PATH: process.env['PATH'] }, timeout: 20_000 }
  return needsSudo
    ? spawn('sudo', ['-n', '-u', `#${nobody}`, process.execPath, ...argv], options)
    : spawn(process.execPath, argv, { ...options, uid: nobody, gid: nobody })
}

/** Runs it to its end and reads what it printed as JSON. */
export const runAsOther = async <Result>(
  script: string,
  ...args: readonly string[]
): Promise<Result> => {
  const child = startAsOther(script, ...args)
  let stdout = ''
  let stderr = ''
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  await once(child, 'close')
  if (child.exitCode !== 0) throw new Error(`as another user it ended badly: ${stderr}`)
  return JSON.parse(stdout) as Result
}

/**
 * A program of another user that listens at an address and writes down what it is sent. A port of 0 is any
 * free one. It answers 200 to everything.
 */
export type Squatter = {
  readonly port: number
  /** Ends it; gives all that came. */
  readonly end: () => Promise<string>
}

export const squatAsOther = async (host: string, port: number): Promise<Squatter> => {
  const child = startAsOther(
    `import { createServer } from 'node:net'
     const server = createServer((socket) => {
       socket.on('error', () => undefined)
       socket.on('data', (chunk) => {
         process.stdout.write(chunk)
         socket.end('HTTP/1.1 200 OK\\r\\ncontent-length: 0\\r\\nconnection: close\\r\\n\\r\\n')
       })
     })
     const [host, port] = process.argv.slice(-2)
     server.listen({ host, port: Number(port), ipv6Only: true }, () =>
       process.stdout.write('port ' + server.address().port + '\\n'))
     process.stdin.on('end', () => process.exit(0)).resume()`,
    host,
    String(port),
  )
  let heard = ''
  let stderr = ''
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const listening = new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1')
      if (/^port \d+\n/.test(heard)) resolve()
    })
    child.once('exit', () => reject(new Error(`another user cannot listen: ${stderr}`)))
  })
  await listening
  return {
    port: Number(/^port (\d+)/.exec(heard)?.[1]),
    end: async () => {
      const closed = once(child, 'close')
      child.stdin?.end()
      await closed
      return heard.replace(/^port \d+\n/, '')
    },
  }
}

/**
 * A squatter at a port that nobody has at the other address. A port that is free at one address may be in use
 * at another, if only by a connection that went out from it or waits out its end (TIME_WAIT); so it is taken
 * there first, and let go when the squatter listens.
 */
export const squatBeside = async (free: string, taken: string): Promise<Squatter> => {
  for (let tries = 1; ; tries += 1) {
    const holder = createServer().listen({ host: free, port: 0, ipv6Only: true })
    await once(holder, 'listening')
    const { port } = holder.address() as AddressInfo
    try {
      return await squatAsOther(taken, port)
    } catch (error) {
      if (tries === 20) throw error
    } finally {
      await promisify(holder.close.bind(holder))()
    }
  }
}
