import type { CommitSettings, PullRequestSettings } from '../../../../shared/config/workspace.ts'
import { parseLogin } from '../../../../shared/config/name-forms.ts'
import { textAt, valueAt } from '../../../util/payload-path.ts'
import { doorwardIdentity, type Git, type GitOptions } from '../../../workspace/git.ts'
import { asReadOnly, DeliveryError } from '../../delivery-error.ts'
import type { GithubRequest } from './github-api.ts'

/** The same change with the author and the trailer of the rule; the same again for each attempt. */
export const withAuthor = async (
  git: Git,
  at: GitOptions,
  commit: string,
  {
    author: wanted = 'bot',
    signoff = false,
    bot,
  }: CommitSettings & { readonly bot?: string | undefined },
  readLogin: () => Promise<string>,
): Promise<string> => {
  // A bot has an account.
  const author = wanted === 'bot' && bot !== undefined ? 'login' : wanted
  if (author === 'bot' && !signoff) return commit
  const others = author === 'login' ? await readLogin() : author
  const person = author === 'bot' ? doorwardIdentity : others
  const text = String((await git(['cat-file', 'commit', commit], at)).stdout)
  const end = text.indexOf('\n\n')
  const head = text
    .slice(0, end)
    .replaceAll(
      /^(author|committer) .* (\d+ [+-]\d{4})$/gm,
      (_, who: string, date: string) => `${who} ${person} ${date}`,
    )
  const message = text.slice(end).trimEnd()
  const trailer = signoff ? `\n\nSigned-off-by: ${person}` : ''
  const input = `${head}${message}${trailer}\n`
  const { stdout } = await git(['hash-object', '-t', 'commit', '-w', '--stdin'], { ...at, input })
  return String(stdout).trim()
}

/**
 * The account of the token, with the address that GitHub keeps for it: commits by it count as the account's, and
 * show no private address (docs.github.com/account-and-profile/reference/email-addresses-reference).
 */
export const readLogin = async (
  request: GithubRequest,
  gitOrigin: string,
  bot?: string,
): Promise<string> => {
  if (bot !== undefined) return readBotAccount(request, gitOrigin, bot)
  const { status, json } = await asReadOnly(request('/user', { handles: [403, 404] }))
  const login = textAt(json, 'login')
  const id = valueAt(json, ['id'])
  if (status !== 200 || login === undefined || typeof id !== 'number')
    throw new DeliveryError('permanent', 'the account of this token cannot be read', {
      hint: 'write the author into the rule: commit: { author: "Name <mail>" }',
    })
  const name = (textAt(json, 'name') ?? '').replaceAll(/[<>\p{Cc}]/gu, '').trim()
  return `${name || login} <${id}+${login}@users.noreply.${new URL(gitOrigin).hostname}>`
}

/** The account of an App has its own id, and the name `<slug>[bot]`. */
const readBotAccount = async (request: GithubRequest, gitOrigin: string, bot: string) => {
  const name = `${parseLogin(bot)?.account ?? bot}[bot]`
  const path = `/users/${encodeURIComponent(name)}`
  const { json } = await asReadOnly(request(path, { handles: [403, 404] }))
  const id = valueAt(json, ['id'])
  const number = typeof id === 'number' ? `${id}+` : ''
  return `${name} <${number}${name}@users.noreply.${new URL(gitOrigin).hostname}>`
}

/** Sets labels and reviewers; returns a note for what GitHub refuses, as the pull request is there already. */
export const addLabelsAndReviewers = async (
  request: GithubRequest,
  repository: string,
  number: unknown,
  { labels = [], reviewers = [] }: PullRequestSettings,
): Promise<string> => {
  const isTeam = (name: string) => name.includes('/')
  const wanted = [
    ['labels', labels, `issues/${String(number)}/labels`, { labels }],
    [
      'reviewers',
      reviewers,
      `pulls/${String(number)}/requested_reviewers`,
      {
        reviewers: reviewers.filter((name) => !isTeam(name)),
        team_reviewers: reviewers.filter(isTeam).map((name) => name.replace(/^.*\//, '')),
      },
    ],
  ] as const
  let note = ''
  for (const [what, names, path, body] of wanted) {
    if (names.length === 0) continue
    const { status } = await request(`${repository}/${path}`, { body, handles: [403, 404, 422] })
    if (status >= 400) note += `; its ${what} are not set, as GitHub refused them (${status})`
  }
  return note
}
