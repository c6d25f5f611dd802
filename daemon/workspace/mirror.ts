import { existsSync } from 'node:fs'
import { mkdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DoorwardError } from '../../shared/errors.ts'
import { type Git, GitFailed, type Remote } from './git.ts'
import { isHash } from './request.ts'

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

export type Wanted = {
  readonly ref: string
  readonly base: string | undefined
  readonly pull: string | undefined
  readonly depth: number | undefined
}

export type Commits = { readonly head: string; readonly base: string | undefined }

/**
 * Fetches what is wanted in one request, and keeps it under refs, by which git knows what it has. A commit of
 * a fork, and one that was pushed over, may be at the pull request only. Senders are sometimes faster than
 * their own servers: what is not there is asked for again after `delaysMs`.
 */
export const fetchCommits = async (
  git: Git,
  { gitDir, remote, repository }: Mirror,
  { ref, base, pull, depth }: Wanted,
  run: string,
  signal: AbortSignal,
  delaysMs: readonly number[],
): Promise<Commits> => {
  const at = { cwd: gitDir, gitDir, remote, signal }
  const place = `refs/doorward/runs/${run}`
  const fetch = async (sources: readonly (readonly [source: string, name: string])[]) =>
    git(
      [
        'fetch',
        '--quiet',
        '--no-tags',
        '--no-write-fetch-head',
        ...(depth === undefined ? [] : [`--depth=${depth}`]),
        'origin',
        ...sources.map(([source, name]) => `+${source}:${place}/${name}`),
      ],
      at,
    )
  const wanted = [[ref, 'head'] as const, ...(base === undefined ? [] : [[base, 'base'] as const])]
  const fromPull = async () => {
    await fetch([[pull ?? '', 'pull'], ...wanted.filter(([source]) => source !== ref)])
    // It fails where the pull request has another head by now.
    await git(['update-ref', `${place}/head`, `${ref}^{commit}`], { ...at, remote: undefined })
  }
  const resolve = async (): Promise<Commits> => {
    const names = wanted.map(([, name]) => `${place}/${name}^{commit}`)
    const { stdout } = await git(['rev-parse', ...names], at)
    const [head = '', second] = String(stdout).trim().split('\n')
    // One of each 256: git needs some recent commits to know what it has, not all.
    const kept = new Map([head, second ?? head].map((commit) => [commit.slice(0, 2), commit]))
    const input = [...kept]
      .map(([name, commit]) => `update refs/doorward/seen/${name} ${commit}\n`)
      .join('')
    await git(['update-ref', '--stdin'], { ...at, input })
    return { head, base: second }
  }
  try {
    for (const delayMs of [...delaysMs, undefined])
      try {
        await fetch(wanted).catch(async (error: unknown) => {
          if (!(isMissing(error) && isHash(ref) && pull !== undefined)) throw error
          await fromPull().catch(() => {
            throw error
          })
        })
        break
      } catch (error) {
        if (!isMissing(error) || delayMs === undefined) throw error
        await wait(delayMs, undefined, { signal })
      }
    return await resolve()
  } catch (error) {
    throw toFetchError(error, remote, repository, ref)
  } finally {
    const names = ['head', 'base', 'pull'].map((name) => `delete ${place}/${name}\n`).join('')
    const input = `start\n${names}commit\n`
    await git(['update-ref', '--stdin'], {
      ...at,
      input,
      signal: new AbortController().signal,
    }).catch(() => undefined)
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof GitFailed &&
  /not our ref|couldn't find remote ref|unadvertised object|no such remote ref/i.test(error.message)

const toFetchError = (
  error: unknown,
  { credential, url }: Remote,
  repository: string,
  ref: string,
): unknown => {
  if (!(error instanceof GitFailed)) return error
  if (isMissing(error))
    return new DoorwardError('workspace-ref-not-found', `${repository} has no ${ref} any more`, {
      cause: error,
      hint: 'the branch was deleted or pushed over: a newer event brings what is there now',
    })
  const isRefused =
    /could not read (Username|Password)|Authentication failed|returned error: 40[134]|not found|Access denied/i
  if (isRefused.test(error.message)) {
    const host = URL.canParse(url) ? new URL(url).host : url
    const login = credential === undefined ? 'no login for' : 'the login for'
    return new DoorwardError(
      'workspace-refused',
      `${login} ${host} opens ${repository}: it is private, or does not exist`,
      {
        cause: error,
        hint: 'log in with an account that may read it: doorward oauth login <provider>; at github a private repository needs the scope repo',
      },
    )
  }
  return toWorkspaceError(error, repository)
}

/** An error of git with the way out. */
export const toWorkspaceError = (error: unknown, repository: string): unknown => {
  if (!(error instanceof GitFailed)) return error
  const { message } = error
  const [what, hint] = known.find(([form]) => form.test(message))?.slice(1) ?? []
  const last = message.split('\n').slice(-3).join('; ')
  const text = typeof what === 'string' ? what : 'git failed'
  return new DoorwardError('workspace-failed', `the workspace of ${repository}: ${text}`, {
    cause: error,
    hint: typeof hint === 'string' ? hint : undefined,
    localDetail: `the workspace of ${repository}: ${text}: ${last}`,
  })
}

const known: readonly (readonly [form: RegExp, what: string, hint?: string])[] = [
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
  [
    /certificate/i,
    'its certificate is not trusted',
    'git reads SSL_CERT_FILE: doorward help networks',
  ],
  [
    /Could not resolve|Failed to connect|Connection|timed out|hung up|error: 5\d\d/i,
    'it cannot be reached now',
    'doorward events retry runs it again',
  ],
  [/invalid path/i, 'it has a path that is not safe to write'],
]
