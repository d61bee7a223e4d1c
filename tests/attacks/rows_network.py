"""Rows 23-25: networks and sockets of the host."""

from __future__ import annotations

from attacks.trials import Row, expect_output, expect_refused

__all__ = ["ROWS"]

ROWS = (
    Row(
        number=23,
        attempt="reach the host's listeners, private networks, the cloud's metadata, a name server",
        attack=expect_refused("""
            import socket
            socket.setdefaulttimeout(0.2)
            def connect(host, port): socket.create_connection((host, port), 0.2).close()
            for host in FACTS["addresses"]:
                attempt(f"tcp {host}", connect, host, FACTS["tcp"])
                sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                tried += 1
                try: sender.sendto(b"out", (host, FACTS["udp"]))  # the host looks whether it came
                except OSError: pass
            for host in ("10.0.0.1", "172.17.0.1", "192.168.1.1", "169.254.169.254",
                         "192.0.2.1", "2001:db8::1"):
                attempt(f"tcp {host}", connect, host, 80)
            attempt("a name", socket.getaddrinfo, "example.com", 80)
        """),
        twin=expect_output(
            """
            import socket
            with socket.create_server(("127.0.0.1", 0)) as server:
                client = socket.create_connection(server.getsockname()); client.sendall(b"fine")
                print(server.accept()[0].recv(9).decode(), socket.gethostbyname("localhost"))
        """,
            says="fine 127.0.0.1",
        ),
    ),
    Row(
        number=24,
        attempt="open sockets that no network namespace holds, such as AF_VSOCK to the hypervisor",
        attack=expect_refused("""
            import socket
            families = {"NETLINK": 16, "PACKET": 17, "TIPC": 30, "BLUETOOTH": 31, "ALG": 38,
                        "VSOCK": 40, "XDP": 44}
            for name, family in families.items():
                for kind in (1, 2, 3, 5):
                    attempt(f"{name} {kind}", socket.socket, family, kind)
            for family in (2, 10):
                attempt(f"raw {family}", socket.socket, family, 3, 1)
                attempt(f"any raw {family}", socket.socket, family, 3, 255)
        """),
        twin=expect_output("""
            import socket
            for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM): socket.socket(family, kind).close()
            print("fine")
        """),
    ),
    Row(
        number=25,
        attempt="reach unix sockets of the host: abstract ones, Docker's, D-Bus's, X11's",
        attack=expect_refused("""
            import socket
            def connect(address):
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(0.5); client.connect(address)
            for address in ("\\0" + FACTS["token"], FACTS["folder"] + "/socket", "/var/run/docker.sock",
                            "/run/docker.sock", "/run/dbus/system_bus_socket", "/tmp/.X11-unix/X0",
                            "\\0/tmp/.X11-unix/X0"):
                attempt(address, connect, address)
        """),
        twin=expect_output("""
            import socket
            with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
                server.bind("\\0own"); server.listen(); client.connect("\\0own")
                server.accept()[0].sendall(b"fine"); print(client.recv(9).decode())
        """),
    ),
)
