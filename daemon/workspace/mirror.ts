import { existsSync } from 'node:fs'
import { mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError } from '../../shared/errors.ts'
import { type Git, GitFailed, type Remote } from './git.ts'

/*
 * One bare repository for each address: what was fetched once is not fetched again. It has commits and trees
 * of everything, and the files of what was checked out, where the server can leave out others.
 */

export type Mirror = {
  readonly gitDir: string
  readonly remote: Remote
  /** For messages. */
  readonly repository: string
}

export const mirrorName = 'mirror.git'
/** Beside the mirror: the address, for `workspace list`. */
export const addressName = 'address'

/** Makes the mirror in its folder, if it is not there. */
export const openMirror = async (
  git: Git,
  folder: string,
  { url }: Remote,
  signal: AbortSignal,
): Promise<{ readonly gitDir: string; readonly isNew: boolean }> => {
  const gitDir = join(folder, mirrorName)
  const isNew = !existsSync(gitDir)
  if (isNew) {
    const made = `${gitDir}.new`
    await rm(made, { recursive: true, force: true })
    await mkdir(made, { recursive: true, mode: 0o700 })
    const at = { cwd: made, gitDir: made, signal }
    await git(['init', '--quiet', '--bare', '--template='], at)
    for (const [name, value] of toSettings(url)) await git(['config', name, value], at)
    await mkdir(join(made, 'info'), { recursive: true })
    await writeFile(join(made, 'info', 'attributes'), ownAttributes)
    await writeFile(join(folder, addressName), url)
    await rename(made, gitDir)
  }
  const now = new Date()
  await utimes(gitDir, now, now)
  return { gitDir, isNew }
}

const toSettings = (url: string): readonly (readonly [name: string, value: string])[] => [
  ['core.repositoryformatversion', '1'],
  ['extensions.partialClone', 'origin'],
  ['remote.origin.url', url],
  ['remote.origin.promisor', 'true'],
  ['remote.origin.partialclonefilter', 'blob:none'],
]

/** Above those of the repository: files are what was committed, and nothing hides from a diff. */
const ownAttributes =
  '* -text -ident -filter -working-tree-encoding !eol !diff !merge !export-ignore\n'

/** An error of git with the way out. */
export const toWorkspaceError = (error: unknown, repository: string): unknown => {
  if (!(error instanceof GitFailed)) return error
  const { message, proxy } = error
  const [, what = 'git failed', hint] = proxy
    ? [undefined, proxy.message, proxy.hint]
    : (known.find(([form]) => form.test(message)) ?? [])
  const last = message.split('\n').slice(-3).join('; ')
  const text = `the workspace of ${repository}: ${what}`
  return new DoorwardError('workspace-failed', text, {
    cause: error,
    hint,
    localDetail: `${text}${proxy ? '' : `: ${last}`}${hint === undefined ? '' : ` (${hint})`}`,
  })
}

/** The way out where git does not trust the certificate of a server. */
export const certificateHint =
  'if a CA of your company signed it, name the file of that CA in NODE_EXTRA_CA_CERTS; git also reads SSL_CERT_FILE: doorward help networks'

type KnownFault = readonly [form: RegExp, what: string, hint?: string]

const known: readonly KnownFault[] = [
  [
    /out of memory|malloc failed|cannot allocate memory|unable to create thread/i,
    'git needs more memory than it may have: half of the machine, and 4 GB at most',
    'with depth: 1 on the workspace of the rule it needs less',
  ],
  [
    /No space left|Disk quota exceeded|File too large/i,
    'the disk is full',
    'doorward workspace clear',
  ],
  // Git does not say why.
  [
    /unable to (write|create) file/i,
    'a file cannot be written: the disk may be full',
    'doorward workspace clear',
  ],
  [/dubious ownership/, 'the repository belongs to another user'],
  [/not appear to be a git repository|does not exist|No such file/i, 'there is no such repository'],
  [/error: 30[12378]|redirect/i, 'it has moved', 'write its new address into repo'],
  [/certificate|SSL CA cert/i, 'its certificate is not trusted', certificateHint],
  [
    /Could not resolve|Failed to connect|Connection|timed out|hung up|error: 5\d\d/i,
    'it cannot be reached now',
    'doorward events retry runs it again',
  ],
  [/invalid path/i, 'it has a path that is not safe to write'],
]
