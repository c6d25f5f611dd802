import type { Status, StatusProblem } from '../../shared/api.ts'
import {
  brokenFile,
  getFix,
  providerTitle,
  providerToLogIn,
  toSentence,
  upperFirst,
} from '../wording.ts'
import { type Note, type NoteButton, toBody, daemonKey, loginKey, toTitle } from './note.ts'
import { needsLogin } from '../attention.ts'

/*
 * Notes made from how the daemon stands, not from what happened: what a person has to do is told once,
 * and again only after it was well; a login is told when one was wanting.
 */

/** What was told and is not well yet, with the key of its note, and the providers that wanted a login. */
export type Told = {
  readonly needs: ReadonlyMap<string, string>
  readonly without: ReadonlySet<string>
}

export const nothingTold: Told = { needs: new Map(), without: new Set() }

/**
 * The notes for a status, the keys of those of which nothing is so any more, and what is to be kept in mind for
 * the next one.
 */
export const notesOfStatus = (
  status: Status,
  before: Told,
  tellsLogin: (provider: string) => boolean,
): { readonly notes: readonly Note[]; readonly over: readonly string[]; readonly told: Told } => {
  const problems = tellingProblems(status)
  const logins = loginNotes(status)
  const isNew = ([key]: readonly [string, unknown]) => !before.needs.has(key)
  const newProblems = problems.filter(isNew)
  const needs = new Map([
    ...logins.map(([key]) => [key, key] as const),
    ...problems.map(([key]) => [key, before.needs.get(key) ?? noteKey(key, newProblems)] as const),
  ])
  // That a login was made takes the place of what was told of it before.
  const made = status.providers
    .filter(({ status: state }) => state === 'ok')
    .map(({ provider }) => loginKey(provider))
  const stays = new Set([...needs.values(), ...made])
  const without = status.providers
    .filter((provider) => provider.status === 'not-logged-in' || needsLogin(status, provider))
    .map(({ provider }) => provider)
  const arrived = status.providers.filter(
    ({ provider, status: state }) =>
      state === 'ok' && before.without.has(provider) && !tellsLogin(provider),
  )
  return {
    notes: [
      ...problemNotes(newProblems.map(([, problem]) => problem)),
      ...logins.filter(isNew).map(([, note]) => note),
      ...arrived.map(({ provider, account }) => ({
        title: toTitle(`${providerTitle(provider)}: logged in`),
        body: toBody(account ? `as ${account.name}` : 'its tokens are kept on this machine'),
        key: loginKey(provider),
      })),
    ],
    over: [...new Set(before.needs.values())].filter((key) => !stays.has(key)),
    told: { needs, without: new Set(without) },
  }
}

/** The daemon that ran is gone without having stopped. */
export const crashNote: Note = {
  title: toTitle('the daemon crashed'),
  body: 'Webhooks are not answered until it runs again.',
  failure: true,
  key: daemonKey,
  buttons: [{ label: 'Start daemon', action: { do: 'start-daemon' } }],
}

/** The daemon that the tray has started did not come up; `why` is one line. */
export const startFailureNote = (why: string): Note => {
  const file = brokenFile(why)
  return {
    title: toTitle('the daemon did not start'),
    body: toBody(toSentence(why)),
    failure: true,
    key: daemonKey,
    buttons: [
      ...(file ? [{ label: 'Open', action: { do: 'open-configuration', file } } as const] : []),
      { label: 'Start daemon', action: { do: 'start-daemon' } },
    ],
  }
}

/** What keeps something from working. The rest the menu has room for. */
const telling: ReadonlySet<string> = new Set([
  'config-invalid',
  'home-insecure',
  'home-unusable',
  'secret-unset',
  'secret-unusable',
  'agent-key-unset',
  'target-secret-unset',
  'target-secret-wrong',
  'agent-program-missing',
  'token-file-damaged',
  'token-file-insecure',
])

/** Each with the key by which it is told once. */
const tellingProblems = ({ problems }: Status): (readonly [string, StatusProblem])[] =>
  problems
    .filter(({ code, hint }) => telling.has(code) && providerToLogIn(hint) === undefined)
    // While a file is being mended, its faults change with every save.
    .map((problem) => [problem.code === broken ? broken : problem.detail, problem])

const broken = 'config-invalid'

/** What comes at a time is one note: a secret that is unset may concern many webhooks. */
const problemNotes = (problems: readonly StatusProblem[]): Note[] => {
  const faults = problems.filter(({ code }) => code === broken)
  const others = problems.filter(({ code }) => code !== broken)
  return [
    ...problemNote('configuration broken', broken, faults),
    ...problemNote(
      others.length > 1 ? `${others.length} things need you` : 'something needs you',
      others[0]?.detail ?? '',
      others,
    ),
  ]
}

const problemNote = (title: string, key: string, problems: readonly StatusProblem[]): Note[] => {
  const [first] = problems
  if (!first) return []
  return [
    {
      title: toTitle(title),
      body: toBody(problems.map(({ detail }) => toSentence(detail)).join('\n')),
      failure: true,
      key: problemKey(key),
      buttons: mendButtons(first),
    },
  ]
}

const problemKey = (key: string): string => `problem ${key}`

/** Of the note that a new problem stands in: several that come at a time go by the first. */
const noteKey = (key: string, together: readonly (readonly [string, StatusProblem])[]): string =>
  problemKey(key === broken ? broken : (together.find(([other]) => other !== broken)?.[0] ?? key))

const mendButtons = (problem: StatusProblem): NoteButton[] => {
  const action = getFix(problem)
  return [{ label: action.do === 'open-configuration' ? 'Open' : 'What to do', action }]
}

const loginNotes = (status: Status): (readonly [string, Note])[] =>
  status.providers
    .filter((provider) => needsLogin(status, provider))
    .map(({ provider }) => {
      const why = status.problems.find(({ hint }) => providerToLogIn(hint) === provider)?.detail
      const key = loginKey(provider)
      return [
        key,
        {
          title: toTitle(`${providerTitle(provider)}: log in again`),
          body: toBody(upperFirst(why ?? 'its login has ended')),
          failure: true,
          key,
          buttons: [{ label: 'Log in', action: { do: 'login', provider } }],
        },
      ]
    })
