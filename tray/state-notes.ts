import type { Status, StatusProblem } from '../shared/api.ts'
import { mendOf, providerToLogIn } from './mend.ts'
import { type Note, type NoteButton, bodyOf, titleOf } from './note.ts'
import { needsLogin } from './needs.ts'
import { providerTitle, sentenceOf, upperFirst } from './wording.ts'

/*
 * Notes made from how the daemon stands, not from what happened: what a person has to do is told once,
 * and again only after it was well; a login is told when one was wanting.
 */

/** What was told and is not well yet, by its key, and the providers that wanted a login. */
export type Told = {
  readonly needs: ReadonlySet<string>
  readonly without: ReadonlySet<string>
}

export const nothingTold: Told = { needs: new Set(), without: new Set() }

/** The notes for a status, and what is to be kept in mind for the next one. */
export const notesOfStatus = (
  status: Status,
  before: Told,
  tellsLogin: (provider: string) => boolean,
): { readonly notes: readonly Note[]; readonly told: Told } => {
  const needs = new Map([...problemNotes(status), ...loginNotes(status)])
  const without = status.providers
    .filter((provider) => provider.status === 'not-logged-in' || needsLogin(status, provider))
    .map(({ provider }) => provider)
  const arrived = status.providers.filter(
    ({ provider, status: state }) =>
      state === 'ok' && before.without.has(provider) && !tellsLogin(provider),
  )
  const news = [...needs].filter(([key]) => !before.needs.has(key)).map(([, note]) => note)
  return {
    notes: [
      ...news,
      ...arrived.map(({ provider, account }) => ({
        title: titleOf(`${providerTitle(provider)}: logged in`),
        body: bodyOf(account ? `as ${account.name}` : 'its tokens are kept on this machine'),
        key: loginKey(provider),
      })),
    ],
    told: { needs: new Set(needs.keys()), without: new Set(without) },
  }
}

/** The daemon that ran is gone without having stopped. */
export const crashNote: Note = {
  title: titleOf('the daemon crashed'),
  body: 'Webhooks are not answered until it runs again.',
  failure: true,
  key: 'daemon',
  buttons: [{ label: 'Start daemon', action: { do: 'start-daemon' } }],
}

/** The daemon that the tray has started did not come up; `why` is one line. */
export const startFailureNote = (why: string): Note => ({
  title: titleOf('the daemon did not start'),
  body: bodyOf(sentenceOf(why)),
  failure: true,
  key: 'daemon',
})

/** A note about the login to a provider takes the place of the one before. */
const loginKey = (provider: string): string => `login ${provider}`

/** What keeps something from working. The rest is advice, and the menu has room for it. */
const telling: ReadonlySet<string> = new Set([
  'config-invalid',
  'home-insecure',
  'home-unusable',
  'secret-unset',
  'agent-key-unset',
  'target-secret-unset',
  'agent-program-missing',
  'token-file-damaged',
  'token-file-insecure',
])

const problemNotes = ({ problems }: Status): [string, Note][] => {
  const groups = new Map<string, StatusProblem[]>()
  for (const problem of problems) {
    if (!telling.has(problem.code) || providerToLogIn(problem.hint) !== undefined) continue
    // While a file is being mended, its faults change with every save.
    const key = problem.code === 'config-invalid' ? problem.code : problem.detail
    groups.set(key, [...(groups.get(key) ?? []), problem])
  }
  return [...groups].map(([key, [first, ...others]]) => [
    key,
    {
      title: titleOf(
        key === 'config-invalid' ? 'the configuration cannot be used' : 'something needs you',
      ),
      body: bodyOf(
        [first, ...others].map((problem) => sentenceOf(problem?.detail ?? '')).join('\n'),
      ),
      failure: true,
      key: `problem ${key}`,
      buttons: first ? mendButtons(first) : [],
    },
  ])
}

const mendButtons = (problem: StatusProblem): NoteButton[] => {
  const action = mendOf(problem)
  return [{ label: action.do === 'open-configuration' ? 'Open' : 'What to do', action }]
}

const loginNotes = (status: Status): [string, Note][] =>
  status.providers
    .filter((provider) => needsLogin(status, provider))
    .map(({ provider }) => {
      const why = status.problems.find(({ hint }) => providerToLogIn(hint) === provider)?.detail
      const key = loginKey(provider)
      return [
        key,
        {
          title: titleOf(`${providerTitle(provider)}: log in again`),
          body: bodyOf(upperFirst(why ?? 'its login has ended')),
          failure: true,
          key,
          buttons: [{ label: 'Log in', action: { do: 'login', provider } }],
        },
      ]
    })
