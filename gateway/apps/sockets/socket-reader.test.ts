import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { expect } from "chai";
import { WebSocket } from "ws";
import {
  SOCKET_WAITING_BYTES_MAX,
  SOCKETS_UNREAD_BYTES_MAX,
} from "../../../schemas/apps/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { SOCKET_CLOSE_MS_MAX, type SocketRouter, socketRouter } from "../../http/socket-router.ts";
import { UnreadBytes } from "../../http/unread-bytes.ts";
import { frameBytes } from "./frame-bytes.ts";
import { SocketReader } from "./socket-reader.ts";

const PIECE = 100_000;
/** Larger than the number of frames that both ends of a connection buffer for a client that does not read. */
const FLOOD_MAX = 1_000;

interface Accepted {
  socket: WebSocket;
  stream: Duplex;
}

describe("SocketReader", function () {
  this.timeout(300_000);
  let server: Server;
  let router: SocketRouter;
  let accepted: Accepted[];
  let clients: WebSocket[];
  let unread: UnreadBytes;
  beforeEach(async () => {
    unread = new UnreadBytes(SOCKETS_UNREAD_BYTES_MAX);
    accepted = [];
    clients = [];
    const admit = async () => ({
      accountId: "one",
      accept: (socket: WebSocket, stream: Duplex) => void accepted.push({ socket, stream }),
    });
    router = socketRouter([{ match: () => true, admit }]);
    server = createServer().on("upgrade", router.upgrade).listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterEach(async () => {
    // A client that is paused does not notice that its connection has ended.
    for (const client of clients) client.terminate();
    router.terminate();
    await new Promise((resolve) => server.close(resolve));
  });

  async function connected(): Promise<Accepted & { client: WebSocket }> {
    const client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    clients.push(client);
    await once(client, "open");
    const served = await until("it is accepted", () => accepted.at(-1));
    return { client, ...served };
  }

  /** Counts the frames of a socket, which is cut off past the limit. */
  const counted = (socket: WebSocket, accountId = "one") =>
    unread.client(accountId, () => socket.terminate());

  /** Until it is given up. */
  function flood({ socket, stream }: Accepted, { isState }: { isState: boolean }): number {
    const reader = new SocketReader(socket, stream, counted(socket));
    for (let sent = 0; sent < FLOOD_MAX; sent++) {
      if (socket.readyState !== socket.OPEN) return sent;
      const bytes = frameBytes(Buffer.alloc(PIECE, String(sent % 10)), true);
      reader.send({ bytes, isState });
    }
    return FLOOD_MAX;
  }

  it("closes one that is too slow with a code, which it reads when it reads on", async () => {
    const { client, socket, stream } = await connected();
    client.pause();
    let frames = 0;
    client.on("message", () => {
      frames += 1;
    });
    const sent = flood({ socket, stream }, { isState: false });
    expect(sent * PIECE).to.be.greaterThan(SOCKET_WAITING_BYTES_MAX);
    expect(sent).to.be.lessThan(FLOOD_MAX);
    expect(socket.bufferedAmount).to.be.at.most(SOCKET_WAITING_BYTES_MAX + 2 * PIECE);
    client.resume();
    const [code, reason] = await once(client, "close");
    expect(code).to.equal(1013);
    expect(String(reason)).to.match(/^Too slow/);
    expect(frames).to.be.lessThan(sent);
  });

  it("cuts one off that reads nothing, when the time for that is over", async () => {
    const { client, socket, stream } = await connected();
    client.pause();
    flood({ socket, stream }, { isState: false });
    const since = performance.now();
    await once(socket, "close");
    expect(performance.now() - since).to.be.greaterThan(SOCKET_CLOSE_MS_MAX / 2);
    client.terminate();
  });

  it("keeps only the latest state, and closes no socket because of states", async () => {
    const { client, socket, stream } = await connected();
    client.pause();
    const last: string[] = [];
    client.on("message", (data) => last.push(String(data).slice(0, 1)));
    expect(flood({ socket, stream }, { isState: true })).to.equal(FLOOD_MAX);
    expect(unread.of("one")).to.be.lessThan(SOCKET_WAITING_BYTES_MAX + 4 * PIECE);
    client.resume();
    await until("the latest is there", () => last.at(-1) === String((FLOOD_MAX - 1) % 10));
    expect(last.length).to.be.lessThan(FLOOD_MAX / 2);
    expect(socket.readyState).to.equal(socket.OPEN);
  });

  it("sends frames of every length, as text and as bytes", async () => {
    const { client, socket, stream } = await connected();
    const reader = new SocketReader(socket, stream, counted(socket));
    const heard: string[] = [];
    client.on("message", (data: Buffer, isBinary) => heard.push(`${data.length} ${isBinary}`));
    // Lengths around the limits at which the length field takes more bytes (RFC 6455, section 5.2).
    const lengths = [0, 1, 125, 126, 65_535, 65_536, 300_000];
    for (const length of lengths) {
      for (const isText of [true, false]) {
        reader.send({ bytes: frameBytes(Buffer.alloc(length, "a"), isText), isState: false });
      }
    }
    reader.close(1000, "all");
    const [code] = await once(client, "close");
    expect(code).to.equal(1000);
    expect(heard).to.deep.equal(lengths.flatMap((length) => [`${length} false`, `${length} true`]));
  });

  it("gather() holds frames, in order with the socket's own, until release()", async () => {
    const { client, socket, stream } = await connected();
    const reader = new SocketReader(socket, stream, counted(socket));
    const heard: string[] = [];
    client.on("message", (data) => heard.push(String(data)));
    client.on("ping", (data) => heard.push(String(data)));
    reader.gather();
    reader.send({ bytes: frameBytes(Buffer.from("one"), true), isState: false });
    socket.ping("two");
    reader.send({ bytes: frameBytes(Buffer.from("three"), true), isState: true });
    const held = stream.writableLength;
    expect(held).to.be.greaterThan("onetwothree".length);
    reader.release();
    expect(stream.writableLength).to.be.lessThan(held);
    reader.close(1000, "all");
    await once(client, "close");
    expect(heard).to.deep.equal(["one", "two", "three"]);
  });

  const newFrame = () => frameBytes(Buffer.alloc(PIECE), true);

  /** Opens a client that does not read, and sends it frames until its stream holds some. */
  async function unreadClient(accountId: string, frame: () => Buffer = newFrame) {
    const { client, socket, stream } = await connected();
    client.pause();
    const reader = new SocketReader(socket, stream, counted(socket, accountId));
    await until("the system takes no more", () => {
      const isFull = stream.writableLength >= 5 * PIECE;
      while (stream.writableLength < 5 * PIECE) reader.send({ bytes: frame(), isState: false });
      return isFull;
    });
    return { client, socket, reader };
  }

  it("counts what clients do not read for their account, and nothing any more when they have read it", async () => {
    const { client, reader } = await unreadClient("one");
    expect(unread.of("one")).to.be.within(5 * PIECE, 8 * PIECE);
    client.resume();
    await until("all is read", () => unread.of("one") === 0);
    reader.send({ bytes: frameBytes(Buffer.from("more"), true), isState: false });
    expect(unread.of("one")).to.equal(0);
    const other = await unreadClient("one");
    other.reader.drop();
    expect(unread.of("one")).to.equal(0);
  });

  it("counts a frame that several clients do not read one time", async () => {
    const frame = newFrame();
    for (let clients = 0; clients < 3; clients++) await unreadClient("one", () => frame);
    expect(unread.of("one")).to.be.within(PIECE, 2 * PIECE);
    expect(unread.of("two")).to.equal(0);
  });

  it("cuts off the client that stopped reading first past its account's limit, and no other account's", async () => {
    unread = new UnreadBytes(13 * PIECE);
    const other = await unreadClient("two");
    const [first, second] = [await unreadClient("one"), await unreadClient("one")];
    expect(first.socket.readyState).to.equal(first.socket.OPEN);
    const third = await unreadClient("one");
    await until("the first is cut off", () => first.socket.readyState === first.socket.CLOSED);
    for (const { socket } of [other, second, third])
      expect(socket.readyState).to.equal(socket.OPEN);
    expect(unread.of("one")).to.be.at.most(13 * PIECE);
  });

  it("gather() counts nothing of frames that leave with release()", async () => {
    const { socket, stream } = await connected();
    unread = new UnreadBytes(1);
    const reader = new SocketReader(socket, stream, counted(socket));
    reader.gather();
    for (let at = 0; at < 10; at++) {
      reader.send({ bytes: frameBytes(Buffer.from("small"), true), isState: false });
    }
    expect(unread.of("one")).to.equal(0);
    reader.release();
    expect(unread.of("one")).to.equal(0);
    expect(socket.readyState).to.equal(socket.OPEN);
  });
});
