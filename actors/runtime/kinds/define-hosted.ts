/** What a kind is whose messages run somebody else's code: placed and ordered as every actor is, with a store of its own. */
import type { CallId } from "../../../schemas/call-id.ts";
import type { Contract, DeepReadonly, Input, Messages } from "../../../schemas/contract.ts";

/** One message on its way to an instance. */
export interface HostedMessage<M extends Messages, N extends keyof M & string = keyof M & string> {
  message: N;
  input: DeepReadonly<Input<M[N]>>;
  /**
   * The same in every try of one call or delivery. The instance keeps it with the effect, and answers a repeat from there: the
   * runtime repeats what it cannot know to have had its effect.
   */
  id: string;
  /** Of a call whose client numbers its calls. */
  call?: CallId;
  /** Nobody waits after this time (epoch ms). */
  deadlineAt: number;
}

/**
 * One key in memory, where its shard is. Everything it answers is durable by then, and it alone sees to that: by a store that
 * fences out an instance that was opened before it elsewhere.
 */
export interface HostedInstance<M extends Messages> {
  /**
   * Handles a message; several may be under way, begun in the order in which they came. Resolves with the reply (checked by
   * the contract) when its effect is durable. Throws ActorError to refuse; anything else is a fault, and mail is tried again.
   */
  receive(message: HostedMessage<M>): Promise<unknown>;
  /** True while it must stay in memory although no message came for a while. */
  readonly isBusy: boolean;
  /**
   * False of a message under way, by its id, that may have had an effect which nobody would recognise a second time: should
   * this host give it up, its caller is refused, and it is not asked again elsewhere. Where absent all may come again.
   */
  mayRepeat?(id: string): boolean;
  /** Finishes what is under way, or gives up when the signal aborts: another host takes over by then. Never rejects. */
  close(signal: AbortSignal): Promise<void>;
}

export interface HostedContext {
  /** True while this host surely owns the key's shard. An answer that nothing durable proves is held until it is sure. */
  confirm(): Promise<boolean>;
  /** True while mail of another message waits behind what is delivered. */
  hasOtherMail(): boolean;
  /** The instance has failed, or found itself fenced out: what waits is asked again, and the next message opens it anew. */
  end(error: Error): void;
  /** Aborts when the host gives the key up without waiting. */
  signal: AbortSignal;
}

export interface HostedDefinition<M extends Messages> {
  contract: Contract<M>;
  /** An instance that nothing came to for so long is closed. */
  idleMs: number;
  /** Loads a key. Throws ActorError to refuse what waits for it; after anything else mail is tried again. */
  open(key: string, context: HostedContext): Promise<HostedInstance<M>>;
  /**
   * Mail that was refused, or has failed too often, by the key's instance or because there is none: tells those who wait for
   * what becomes of it. True where nobody needs a dead letter of it.
   */
  refused?(
    key: string,
    mail: Pick<HostedMessage<M>, "message" | "input">,
    error: Error,
  ): Promise<boolean>;
}

/** A definition whose messages are known only to itself: what a host keeps. */
export interface AnyHostedDefinition {
  contract: Contract;
  idleMs: number;
  // biome-ignore lint/suspicious/noExplicitAny: the one place where instances of different kinds meet.
  open(key: string, context: HostedContext): Promise<HostedInstance<any>>;
  refused?(
    key: string,
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    mail: { message: any; input: any },
    error: Error,
  ): Promise<boolean>;
}

export function defineHosted<M extends Messages>(
  definition: HostedDefinition<M>,
): HostedDefinition<M> {
  return definition;
}
