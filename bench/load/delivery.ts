import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { packageFolder } from '../../shared/version.ts'

/** What every server of the bench checks signatures with. */
export const secret = 'bench-secret-0123456789abcdef'

/** A delivery as GitHub sends it, without its id, which is new for each post. */
export type Delivery = {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
}

export type Size = '1 KB' | '24 KB' | '1 MB'

/**
 * A real `pull_request.opened`: cut to the fields that the template uses, as a whole with a description
 * of 3 KB, and with the commits of many pushes behind it.
 */
export const deliveryOf = async (size: Size): Promise<Delivery> => {
  const opened = (await sample('pull_request.opened')) as {
    pull_request: Record<string, unknown>
  }
  const { pull_request: pull } = opened
  const described = (bytes: number) => ({ ...pull, body: line.repeat(bytes / line.length) })
  if (size === '24 KB') return sign({ ...opened, pull_request: described(3000) })
  if (size === '1 KB') {
    const { id, node_id, html_url, number, title } = pull
    const few = { id, node_id, html_url, number, title, body: line.repeat(8) }
    return sign({ action: 'opened', number, pull_request: few })
  }
  const { commits } = (await sample('push')) as { commits: unknown[] }
  const one = JSON.stringify(commits).length
  const many = Array.from({ length: Math.round(1e6 / one) }, () => commits).flat()
  return sign({ ...opened, commits: many })
}

const line = 'It parses the last line of a file without a newline, too, and has a test of it.\n'

const sample = async (name: string): Promise<unknown> =>
  JSON.parse(
    await readFile(new URL(`assets/samples/github/${name}.json`, packageFolder), 'utf8'),
  ) as unknown

/** A payload with the headers that GitHub sends with it. */
export const sign = (payload: unknown): Delivery => {
  const body = Buffer.from(JSON.stringify(payload))
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  return {
    body,
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': 'GitHub-Hookshot/044aadd',
      Accept: '*/*',
      'X-GitHub-Event': 'pull_request',
      'X-GitHub-Hook-ID': '292430182',
      'X-GitHub-Hook-Installation-Target-ID': '79929171',
      'X-GitHub-Hook-Installation-Target-Type': 'repository',
      'X-Hub-Signature-256': `sha256=${signature}`,
    },
  }
}
