import { existsSync } from 'node:fs'
import { matchesPaths } from '../../../shared/filter/paths.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Git } from '../../workspace/git.ts'
import { foldPath } from '../../workspace/steering.ts'
import { DeliveryError } from '../delivery-error.ts'
import type { AgentReply, Attempt } from '../sender.ts'

/*
 * What an agent changed, before anything of it leaves this machine. Files that run by themselves, or that rule what
 * others may do, are refused unless the rule names them.
 */

const maxFiles = 100
const maxBytes = 1024 * 1024
const maxNamed = 5

type FileChange = {
  /** A character for each byte. */
  readonly path: string
  readonly mode: string
  readonly oldMode: string
  readonly hash: string
  readonly bytes: number
  /** Of a symbolic link. */
  readonly target: string | undefined
}

const modes = { link: '120000', submodule: '160000', none: '000000' } as const

/** By the path as file systems read it that ignore case. */
const isAt =
  (form: RegExp) =>
  ({ path }: FileChange): boolean =>
    form.test(foldPath(path))

const kinds: readonly (readonly [why: string, isOne: (file: FileChange) => boolean])[] = [
  [
    'runs with the secrets of the repository',
    isAt(/^\.github\/(workflows|actions)(\/(?!.*\.md$)|$)/),
  ],
  // docs.github.com and docs.gitlab.com, "Code owners".
  ['says whose review is needed', isAt(/^(\.github\/|\.gitlab\/|docs\/)?codeowners$/)],
  ['sets up GitHub', isAt(/^\.github(\/(?!.*\.md$)|$)/)],
  // docs.gitlab.com/ci/yaml (also what it includes), circleci.com, docs.gitea.com, forgejo.org, woodpecker-ci.org,
  // jenkins.io, learn.microsoft.com/azure/devops, travis-ci.com, buildkite.com, drone.io, appveyor.com,
  // support.atlassian.com (Bitbucket), cloud.google.com/build and runatlantis.io: by the name that each reads.
  [
    'runs with the secrets of the repository',
    isAt(
      /^\.gitlab-ci\.yml$|^\.(gitlab|circleci|gitea|forgejo|woodpecker|buildkite)(\/(?!.*\.md$)|$)|^(jenkinsfile|atlantis\.yaml|\.?appveyor\.yml|azure-pipelines\.ya?ml|bitbucket-pipelines\.yml|cloudbuild\.(ya?ml|json)|\.(travis|drone|woodpecker)\.ya?ml)$/,
    ),
  ],
  // docs.github.com/code-security/dependabot, docs.renovatebot.com, docs.mergify.com: they merge by what it says.
  ['sets up Dependabot', isAt(/(^|\/)dependabot\.ya?ml$/)],
  [
    'sets up a bot that merges',
    isAt(
      /^(\.gitlab\/)?(renovate\.json5?|\.renovaterc(\.json5?)?)$|^\.?(mergify\.yml|bors\.toml)$|^\.mergify(\/|$)/,
    ),
  ],
  ['says where submodules come from', isAt(/^\.gitmodules$/)],
  [
    'runs on the machines of developers',
    isAt(
      // code.visualstudio.com (tasks that run when a folder is opened), containers.dev, direnv.net.
      /(^|\/)(\.husky|\.githooks|\.devcontainer)(\/|$)|(^|\/)\.vscode\/tasks\.json$|(^|\/)\.(devcontainer\.json|envrc)$|(^|\/)\.?lefthook(-local)?\.(ya?ml|toml|json)$|(^|\/)\.pre-commit-config\.ya?ml$/,
    ),
  ],
  [
    'is a submodule',
    ({ mode, oldMode }) => mode === modes.submodule || oldMode === modes.submodule,
  ],
  ['is a link out of the repository', (file) => file.mode === modes.link && leadsOut(file)],
  ['is over 1 MB', ({ bytes }) => bytes > maxBytes],
]

/** Only `..` at the start of a link can be counted: behind a name it may leave a folder that is a link itself. */
const leadsOut = ({ path, target = '' }: FileChange): boolean => {
  const parts = target.split(/[/\\]/)
  const ups = parts.findIndex((part) => part !== '..')
  const isAbsolute = /^([/\\]|[A-Za-z]:|$)/.test(target)
  const rest = ups === -1 ? [] : parts.slice(ups)
  const tooHigh = parts.length - rest.length > path.split('/').length - 1
  return isAbsolute || tooHigh || rest.some((part) => part === '..' || foldPath(part) === '.git')
}

export type CheckedChange = {
  readonly commit: string
  /** GitHub lets only some tokens push these. */
  readonly hasWorkflows: boolean
}

type Change = { readonly gitDir: string; readonly ref: string; readonly url: string }

/** The commit of a change that may be pushed. Throws `DeliveryError`. */
export const checkChange = async (
  git: Git,
  { gitDir, ref, url }: Change,
  { eventId, publish }: Pick<AgentReply, 'eventId' | 'publish'>,
  { signal }: Pick<Attempt, 'signal'>,
): Promise<CheckedChange> => {
  const again = `doorward events retry ${eventId} --again`
  const refuse = (message: string, hint: string) =>
    new DeliveryError('permanent', message, { hint })
  const at = { cwd: gitDir, gitDir, signal }
  const read = async (args: readonly string[], input = '') => {
    const { stdout } = await git(args, { ...at, input })
    return stdout.toString('latin1')
  }
  const found = existsSync(gitDir)
    ? await read(['rev-parse', '--quiet', '--verify', `${ref}^{commit}`]).catch(() => undefined)
    : undefined
  if (found === undefined) throw refuse('the change is no longer in the workspace', again)
  const commit = found.trim()
  // Else an event could choose where the code of one repository is published.
  if (toName((await read(['config', 'remote.origin.url'])).trim()) !== toName(url))
    throw refuse(
      'the workspace of the rule has another repository',
      'name the same repository in workspace: and in the target',
    )
  const files = await listFiles(read, commit)
  if (files.length > maxFiles)
    throw refuse(
      `the agent changed ${files.length} files, ${maxFiles} are allowed`,
      `ask for a smaller change, then: ${again}`,
    )
  const unnamed = files.filter(({ path }) => !isNamed(publish?.allowFiles, path))
  const refused = unnamed.flatMap((file) => {
    const [why] = kinds.find(([, isOne]) => isOne(file)) ?? []
    return why === undefined ? [] : [`${toShown(file.path)} (${why})`]
  })
  if (refused.length > 0) {
    const more = refused.length > maxNamed ? `, and ${refused.length - maxNamed} more` : ''
    throw refuse(
      `the agent changed what its rule does not allow: ${refused.slice(0, maxNamed).join(', ')}${more}`,
      'if it may, name such files by globs in allow_files of the rule',
    )
  }
  const bytes = unnamed.reduce((sum, file) => sum + file.bytes, 0)
  if (bytes > maxBytes)
    throw refuse(
      `the files that the agent changed have ${Math.ceil(bytes / 1024)} KB, ${maxBytes / 1024} KB are allowed`,
      `ask for a smaller change, then: ${again}`,
    )
  return { commit, hasWorkflows: files.some(isAt(/^\.github\/workflows(\/|$)/)) }
}

const listFiles = async (
  read: (args: readonly string[], input?: string) => Promise<string>,
  commit: string,
): Promise<FileChange[]> => {
  const options = ['-r', '-z', '--no-renames', '--no-abbrev', '--ignore-submodules=none']
  const raw = (await read(['diff-tree', ...options, `${commit}^`, commit])).split('\0')
  const listed = raw.flatMap((part, index) => {
    if (index % 2 === 1 || part === '') return []
    const [oldMode = '', mode = '', , hash = ''] = part.slice(1).split(' ')
    return [{ path: raw[index + 1] ?? '', oldMode, mode, hash }]
  })
  const isBlob = ({ mode }: { readonly mode: string }) =>
    mode !== modes.none && mode !== modes.submodule
  const hashes = listed.filter(isBlob).map(({ hash }) => hash)
  const sizes = await read(
    ['cat-file', '--batch-check=%(objectname) %(objectsize)'],
    hashes.join('\n'),
  )
  const bytes = new Map(sizes.split('\n').map((line) => line.split(' ') as [string, string]))
  return Promise.all(
    listed.map(async (file) => ({
      ...file,
      bytes: isBlob(file) ? Number(bytes.get(file.hash)) || 0 : 0,
      target: file.mode === modes.link ? await read(['cat-file', 'blob', file.hash]) : undefined,
    })),
  )
}

const toText = (path: string): string => Buffer.from(path, 'latin1').toString()

const toShown = (path: string): string => toPlainLine(toText(path)).slice(0, 100)

const isNamed = (globs: readonly string[] | undefined, path: string): boolean =>
  globs !== undefined && matchesPaths({ only: globs, ignored: [] }, [toText(path)])

const toName = (url: string): string => url.toLowerCase().replace(/\.git$/, '')
